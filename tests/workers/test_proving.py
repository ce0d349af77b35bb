"""What the serving service makes of a final model stands on its checkpoint."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from api.schemas.jobs import ExportProof
from core import serving_proofs
from core.db import make_engine, session_factory
from core.errors import StaleFence
from core.fenced import FencedWriter
from core.keys import create_project
from core.models import Checkpoint, Event, Job
from core.registry import Registry
from core.settings import Settings
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer
from workers.context import Context
from workers.evals.run import Manner
from workers.proving import expected
from workers.proving.compare import TOLERANCE
from workers.proving.run import prove_next
from workers.proving.runner import Prover

PREFIX = "models/ftjob-1/1/model"
EXPORT = {
    "engine": {"name": "transformers", "version": "5", "peft": "1", "dtype": "float32"},
    "proved_at": 1,
    "prompts": 8,
    "tokens": 16,
    "max_difference": 1e-6,
    "mean_difference": 1e-7,
    "max_difference_to_base": 2.0,
    "mean_difference_to_base": 1.0,
    "trainer_difference_to_base": 2.0,
    "tolerance": 1e-3,
    "differs_from_base": True,
}
#: Eight prompts of two tokens; the trained model gives -0.25 for both tokens of a completion.
ROWS = [{"prompt": [1, n], "completion": [5, 6], "logprobs": [-0.25, -0.25]} for n in range(8)]
TRAINED, BASE = -0.25, -1.25


def logprob(trained: float = TRAINED, base: float = BASE) -> Callable[[dict[str, Any], int], float]:
    return lambda header, _place: base if header["artifact"] is None else trained


@pytest.fixture
def server() -> ModelServer:
    server = ModelServer()
    server.logprob = logprob()
    return server


@pytest.fixture
def context(settings: Settings, tmp_path: Path) -> Iterator[Context]:
    """A job that has succeeded and whose final model is to be asked for."""
    engine = make_engine(settings.database_url)
    yield succeeded(settings, session_factory(engine), tmp_path)
    engine.dispose()


@pytest.fixture
def any_context(settings: Settings, factory: sessionmaker[Session], tmp_path: Path) -> Context:
    """The same, on both kinds of databases."""
    return succeeded(settings, factory, tmp_path)


def succeeded(settings: Settings, factory: sessionmaker[Session], tmp_path: Path) -> Context:
    settings = settings.model_copy(
        update={"serving_token": SecretStr("t"), "heartbeat_s": 0.05, "lease_ttl_s": 30.0}
    )
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text("{}")
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nid = "m"\npath = "base"\ncontext_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    store = MemoryStore()
    store.put_bytes(expected.key(PREFIX), json.dumps(ROWS).encode())
    with factory.begin() as session:
        project_id = create_project(session, "p").id
        values = {"project_id": project_id, "model": "m", "method": {}, "training_file": "f"}
        session.add(Job(id="ftjob-1", seed=1, status="running", **values))
    FencedWriter(factory, "ftjob-1", 0).checkpoint(
        4,
        "ft:m",
        PREFIX,
        "adapter",
        {},
        is_final=True,
        has_state=False,
        phase="export",
        proof=EXPORT,
        prove_serving=True,
    )
    with factory.begin() as session:
        session.execute(update(Job).values(status="succeeded"))
    return Context(settings, factory, store, Registry.load(models))


def prove(context: Context, server: ModelServer) -> dict[str, Any]:
    """Ask for the model, which must be due; returns what its proof says as the API shows it."""
    manner = Manner((0.01,), server.transport)
    assert prove_next(context, stopping=threading.Event(), manner=manner) is not None
    return shown(context)


def shown(context: Context) -> dict[str, Any]:
    with context.sessions() as session:
        proof = session.scalars(select(Checkpoint.proof)).one()
    serving = ExportProof.model_validate(proof).serving
    assert serving is not None and proof is not None
    assert set(proof["serving"]) <= set(serving.model_dump())
    return serving.model_dump()


def events(context: Context) -> list[tuple[str, str]]:
    with context.sessions() as session:
        return [(event.level, event.message) for event in session.scalars(select(Event))]


def again_now(context: Context) -> None:
    """Let the time until the next try pass."""
    with context.sessions.begin() as session:
        session.execute(
            update(Checkpoint)
            .where(Checkpoint.serving_due_at.is_not(None))
            .values(serving_due_at=0.0)
        )


def due(context: Context) -> bool:
    with context.sessions() as session:
        return serving_proofs.any_due(session)


def test_model_and_base_are_asked_for_the_same_tokens(
    any_context: Context, server: ModelServer
) -> None:
    server.logprob = logprob(trained=-0.28)
    found = prove(any_context, server)
    assert found["state"] == "proved" and found["message"] is None
    assert (found["prompts"], found["tokens"], found["attempts"]) == (8, 16, 1)
    assert found["mean_difference"] == pytest.approx(0.03)
    assert found["max_difference"] == pytest.approx(0.03)
    assert found["mean_difference_to_base"] == pytest.approx(0.97)
    assert found["differs_from_base"] and found["tolerance"] == TOLERANCE
    assert found["engine"] == {"name": "vllm-fake", "version": "1.2.3"}
    assert found["at"] > 0
    headers = [json.loads(request.headers["x-rft-model"]) for request in server.requests]
    assert headers[:8] == [{"base": "m", "artifact": PREFIX, "kind": "adapter"}] * 8
    assert headers[8:] == [{"base": "m", "artifact": None, "kind": None}] * 8
    bodies = [json.loads(request.content) for request in server.requests]
    assert [body["prompt"] for body in bodies[:8]] == [[1, n, 5, 6] for n in range(8)]
    assert all(
        (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1) for body in bodies
    )
    assert {request.url.path for request in server.requests} == {"/v1/completions"}
    [(level, message)] = events(any_context)
    assert level == "info" and "0.0300 nats per token" in message
    assert not due(any_context)


def test_only_the_tokens_of_completions_are_compared(context: Context, server: ModelServer) -> None:
    server.logprob = lambda header, place: logprob()(header, place) if place in (2, 3) else -9.0
    assert prove(context, server)["mean_difference"] == 0


@pytest.mark.parametrize(
    ("trained", "base", "sentence"),
    [
        (TRAINED - 0.21, BASE, "differs from the trained one by 0.210 nats"),
        (TRAINED, TRAINED, "exactly as its base model does"),
    ],
)
def test_other_weights_are_told_and_not_asked_for_again(
    context: Context, server: ModelServer, trained: float, base: float, sentence: str
) -> None:
    server.logprob = logprob(trained, base)
    found = prove(context, server)
    assert found["state"] == "failed" and sentence in found["message"]
    assert found["mean_difference"] is not None
    [(level, message)] = events(context)
    assert level == "warn" and sentence in message
    again_now(context)
    assert not due(context)
    with context.sessions() as session:
        assert session.get_one(Job, "ftjob-1").status == "succeeded"


def test_a_model_that_learned_nothing_may_answer_as_its_base(
    context: Context, server: ModelServer
) -> None:
    with context.sessions.begin() as session:
        row = session.scalars(select(Checkpoint)).one()
        row.proof = {**(row.proof or {}), "differs_from_base": False}
    server.logprob = logprob(TRAINED, TRAINED)
    found = prove(context, server)
    assert found["state"] == "proved" and not found["differs_from_base"]


def test_a_service_that_is_away_is_tried_again_a_few_times(
    context: Context, server: ModelServer
) -> None:
    server.down = True
    for attempt in (1, 2, 3):
        assert shown(context)["state"] == ("waiting" if attempt == 1 else "failed")
        assert events(context) == []
        found = prove(context, server)
        assert (found["state"], found["attempts"]) == ("failed", attempt)
        assert "could not be used for 0.01 seconds: it does not answer" in found["message"]
        assert not due(context), "it waits before the next try"
        again_now(context)
    assert not due(context)
    [(level, message)] = events(context)
    assert level == "warn" and "rft-server doctor" in message


def test_a_service_that_comes_back_proves_the_model(context: Context, server: ModelServer) -> None:
    server.answer = httpx.Response(503, json={"error": {"message": "All servers are busy"}})
    assert "All servers are busy" in prove(context, server)["message"]
    server.answer = None
    again_now(context)
    found = prove(context, server)
    assert (found["state"], found["attempts"], found["message"]) == ("proved", 2, None)


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        (None, "not stored any more"),
        (b"[", "cannot be read"),
        (json.dumps([{**ROWS[0], "logprobs": [0.0]}]).encode(), "for each token"),
        (json.dumps([{**ROWS[0], "prompt": [1] * 7}]).encode(), "no prompt that leaves room"),
    ],
)
def test_without_the_trainer_s_numbers_there_is_nothing_to_ask(
    context: Context, server: ModelServer, stored: bytes | None, sentence: str
) -> None:
    context.store.delete(expected.key(PREFIX))
    if stored is not None:
        context.store.put_bytes(expected.key(PREFIX), stored)
    found = prove(context, server)
    assert found["state"] == "failed" and sentence in found["message"]
    assert not server.requests
    again_now(context)
    assert not due(context)


def test_a_completion_is_cut_to_the_context(context: Context, server: ModelServer) -> None:
    long = {"prompt": [1] * 5, "completion": [7] * 3, "logprobs": [TRAINED] * 3}
    context.store.put_bytes(expected.key(PREFIX), json.dumps([long]).encode())
    assert prove(context, server)["tokens"] == 2
    assert server.body["prompt"] == [1] * 5 + [7] * 2


def test_answers_without_log_probabilities_are_no_proof(
    context: Context, server: ModelServer
) -> None:
    server.logprob = None
    found = prove(context, server)
    assert found["state"] == "failed" and "lacks log-probabilities" in found["message"]


@pytest.mark.parametrize("status", ["running", "failed", "cancelled"])
def test_only_jobs_that_succeeded_are_looked_at(any_context: Context, status: str) -> None:
    assert due(any_context)
    with any_context.sessions.begin() as session:
        session.execute(update(Job).values(status=status))
    assert not due(any_context)
    with any_context.sessions.begin() as session:
        assert serving_proofs.claim(session, ttl_s=30) is None


def test_one_worker_holds_a_model_until_its_lease_ends(any_context: Context) -> None:
    with any_context.sessions.begin() as session:
        first = serving_proofs.claim(session, ttl_s=30)
        assert first is not None and serving_proofs.claim(session, ttl_s=30) is None
    again_now(any_context)  # as if the lease were over
    with any_context.sessions.begin() as session:
        second = serving_proofs.claim(session, ttl_s=30)
        assert second is not None and second.attempt == 2
    for write in (
        lambda session: serving_proofs.extend(session, first, 30),
        lambda session: serving_proofs.give_back(session, first),
        lambda session: serving_proofs.record(session, first, {}, again=False),
    ):
        with pytest.raises(StaleFence), any_context.sessions.begin() as session:
            write(session)
    assert shown(any_context)["state"] == "waiting"


def test_a_model_whose_workers_were_lost_is_given_up(context: Context, server: ModelServer) -> None:
    for _ in range(serving_proofs.MAX_ATTEMPTS):
        with context.sessions.begin() as session:
            assert serving_proofs.claim(session, ttl_s=30) is not None
        again_now(context)
    found = prove(context, server)
    assert found["state"] == "failed" and "were lost" in found["message"]
    assert not server.requests and not due(context)


def test_a_deleted_model_is_not_asked_for(context: Context) -> None:
    with context.sessions.begin() as session:
        session.execute(update(Checkpoint).values(deleted_at=1))
    assert not due(context)


def test_a_worker_that_stops_gives_the_model_back(context: Context, server: ModelServer) -> None:
    server.hangs = True
    stopping = threading.Event()
    prover = Prover(lambda: context, stopping=stopping, manner=Manner((0.01,), server.transport))
    prover.poke()
    prover.poke()  # its thread is at work: nothing more happens
    deadline = time.monotonic() + 30
    while not server.requests:
        assert time.monotonic() < deadline, "nobody asked"
        time.sleep(0.01)
    assert not due(context)
    stopping.set()
    while not due(context):
        assert time.monotonic() < deadline, "it was not given back"
        time.sleep(0.01)
    assert shown(context)["state"] == "waiting" and len(server.requests) == 1
    server.hangs = False
    assert prove(context, server)["attempts"] == 1
