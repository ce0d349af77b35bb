"""The endpoint: who may call it, what it answers, whose name stands in the answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from core import manifest
from core.errors import ConfigurationError
from core.settings import Settings, get_settings
from tests.fakes.memory_store import MemoryStore
from workers.serving.app import create_app, sweep
from workers.serving.dialect import HERMES, Dialect
from workers.serving.engine import engine_version
from workers.serving.pool import EnginePool
from workers.serving.router import Served
from workers.serving.target import Target
from workers.serving.weights import WeightCache

BODY = {"model": "ft:public", "messages": [{"role": "user", "content": "hi"}], "n": 2}
BASE = {"base": "tiny", "artifact": None, "kind": None}


class FakeRouter:
    """Lends a client of a model server that answers with what it was asked."""

    def __init__(self) -> None:
        self.lent = 0
        self.seen: list[Target] = []
        self.answer = self.echo
        self.dialect = Dialect(parser=HERMES, knows_tools=True, knows_developer=True)

    @asynccontextmanager
    async def route(self, target: Target) -> AsyncIterator[Served]:
        self.seen.append(target)
        self.lent += 1
        transport = httpx.MockTransport(lambda request: self.answer(json.loads(request.content)))
        async with httpx.AsyncClient(transport=transport, base_url="http://vllm") as client:
            yield Served(client, "inside", self.dialect)
        self.lent -= 1

    def echo(self, body: dict[str, Any]) -> httpx.Response:
        if not body.get("stream"):
            return httpx.Response(200, json={"model": body["model"], "asked": body})
        chunks = [{"model": body["model"], "text": text} for text in ("a", "b")]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return httpx.Response(
            200,
            text="".join([*lines, "data: [DONE]\n\n"]),
            headers={"content-type": "text/event-stream"},
        )


@pytest.fixture
def app_settings(settings: Settings, tmp_path: Path) -> Settings:
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nid = "tiny"\npath = "tiny"\ncontext_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    return settings.model_copy(
        update={"models_file": models, "serving_token": SecretStr("between-us")}
    )


@pytest.fixture
def client(app_settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(app_settings, store=MemoryStore())) as client:
        yield client


@pytest.fixture
def router(client: TestClient) -> FakeRouter:
    fake = FakeRouter()
    client.app.state.router = fake  # type: ignore[attr-defined]
    return fake


def ask(client: TestClient, *, target: Any = BASE, token: str = "between-us", **fields: Any) -> Any:
    headers = {"x-rft-token": token, "x-rft-model": json.dumps(target)}
    return client.post("/v1/chat/completions", json={**BODY, **fields}, headers=headers)


def test_the_answer_carries_the_public_name(client: TestClient, router: FakeRouter) -> None:
    answer = ask(client).json()
    assert answer["model"] == "ft:public"
    assert answer["asked"] == {**BODY, "model": "inside"}
    assert router.seen == [Target(base="tiny")]
    assert router.lent == 0


def test_streamed_chunks_carry_the_public_name(client: TestClient, router: FakeRouter) -> None:
    answer = ask(client, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, done = [line for line in answer.text.split("\n\n") if line]
    assert done == "data: [DONE]"
    told = [json.loads(chunk.removeprefix("data: ")) for chunk in chunks]
    assert [(chunk["model"], chunk["text"]) for chunk in told] == [
        ("ft:public", "a"),
        ("ft:public", "b"),
    ]
    assert router.lent == 0


def test_a_refusal_of_the_model_server_passes_through(
    client: TestClient, router: FakeRouter
) -> None:
    said = {"message": "temperature must be non-negative", "param": "temperature", "code": 400}
    router.answer = lambda _body: httpx.Response(400, json={"error": said})
    answer = ask(client)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["message"], error["param"], error["code"]) == (
        "temperature must be non-negative",
        "temperature",
        None,
    )


def test_a_model_server_that_dies_is_a_503(client: TestClient, router: FakeRouter) -> None:
    def die(_body: dict[str, Any]) -> httpx.Response:
        raise httpx.RemoteProtocolError("peer closed connection")

    router.answer = die
    answer = ask(client)
    assert answer.status_code == 503
    assert "ended in the middle" in answer.json()["error"]["message"]


@pytest.mark.usefixtures("router")
def test_only_those_with_the_token_are_answered(client: TestClient) -> None:
    answer = ask(client, token="guess")
    assert answer.status_code == 401
    assert "RFT_SERVING_TOKEN" in answer.json()["error"]["message"]


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    "target", [{}, {"base": "tiny", "artifact": "a"}, {"base": "tiny", "size": 3}, "tiny"]
)
def test_a_malformed_target_is_refused(client: TestClient, target: Any) -> None:
    answer = ask(client, target=target)
    assert answer.status_code == 400
    assert "x-rft-model" in answer.json()["error"]["message"]


def test_an_unknown_base_model_is_named(client: TestClient) -> None:
    answer = ask(client, target={**BASE, "base": "huge"})
    assert answer.status_code == 404
    assert "'huge'" in answer.json()["error"]["message"]


def test_weights_that_were_never_stored_are_named(client: TestClient) -> None:
    target = {"base": "tiny", "artifact": "models/lost/model", "kind": "adapter"}
    answer = ask(client, target=target)
    assert answer.status_code == 503
    assert "models/lost/model" in answer.json()["error"]["message"]


def test_health_needs_no_token(client: TestClient) -> None:
    answer = client.get("/health").json()
    assert answer == {"status": "ok", "engine": engine_version(), "models": []}


def test_the_service_does_not_start_without_a_token(app_settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="RFT_SERVING_TOKEN"):
        create_app(app_settings.model_copy(update={"serving_token": None}))


def test_plain_completions_are_answered_too(client: TestClient, router: FakeRouter) -> None:
    headers = {"x-rft-token": "between-us", "x-rft-model": json.dumps(BASE)}
    body = {"model": "ft:public", "prompt": "a", "best_of": 1}
    answer = client.post("/v1/completions", json=body, headers=headers).json()
    assert answer["asked"] == {"model": "inside", "prompt": "a"}
    assert router.lent == 0


def test_what_the_model_cannot_do_is_refused(client: TestClient, router: FakeRouter) -> None:
    router.dialect = Dialect(parser=None, knows_tools=True, knows_developer=True)
    answer = ask(client, tools=[{"type": "function", "function": {"name": "f"}}])
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "tools_not_supported"


def test_deleted_models_are_let_go_of(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "weights").write_text("w")
    manifest.commit(store, "models/a", tmp_path / "made")
    cache = WeightCache(tmp_path / "cache" / "weights", store)
    folder = cache.fetch("models/a").path
    pool = EnginePool(sockets=tmp_path, logs=tmp_path, limit=1, idle_s=60)
    asyncio.run(sweep(pool, cache))
    assert folder.exists()
    store.delete_prefix("models/a")
    asyncio.run(sweep(pool, cache))
    assert not folder.exists()


@pytest.mark.parametrize("token", ["", "two words", "tok\u00f6n", "line\n"])
def test_a_wrong_token_is_one_sentence_at_the_start(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("RFT_SERVING_TOKEN", token)
    get_settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        create_app()
    assert "RFT_SERVING_TOKEN" in str(ended.value.code)
    get_settings.cache_clear()
