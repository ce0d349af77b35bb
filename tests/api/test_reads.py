"""The short way of reading jobs and events answers exactly what the long way would."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session, sessionmaker

from api.reads import Reads
from api.rendering import MAX_CHARS, job_renderer
from api.schemas.jobs import EventObject, JobObject
from core import keys
from core.db import make_engine, session_factory
from core.models import Event, Job
from tests.api.examples import error_of, job_body, upload
from tests.api.running import Api


@pytest.fixture
def job_id(client: openai.OpenAI, sessions: sessionmaker[Session]) -> str:
    """A job of the default project with a value in every column that an answer shows."""
    job = client.fine_tuning.jobs.create(
        **job_body(upload(client).id), metadata={"team": "ä"}, suffix="s", seed=7
    )
    with sessions.begin() as session:
        session.execute(
            update(Job)
            .where(Job.id == job.id)
            .values(
                finished_at=5,
                estimated_finish=6,
                error={"code": "c", "message": "m \N{SNOWMAN}", "param": None},
                fine_tuned_model="ft:m",
                trained_tokens=9,
                result_files=["file-1"],
                integrations=[],
                eval_id="eval_1",
                cloned_from="ftjob-1",
            )
        )
    return job.id


def test_a_job_is_shown_as_its_schema_shows_the_row(
    http: httpx.Client, api: Api, sessions: sessionmaker[Session], job_id: str
) -> None:
    with sessions() as session:
        row = session.get_one(Job, job_id)
        organization = api.app.state.parts.settings.organization_id
        shown = JobObject.of(row, organization_id=organization).model_dump(mode="json")
        events = session.scalars(
            select(Event).where(Event.job_id == job_id).order_by(Event.seq.desc())
        ).all()
        said = [EventObject.of(event).model_dump(mode="json") for event in events]
    assert None not in (shown["error"], shown["metadata"], shown["trained_tokens"])
    path = f"/v1/fine_tuning/jobs/{job_id}"
    assert http.get(path).json() == shown
    assert http.get("/v1/fine_tuning/jobs").json()["data"] == [shown]
    assert said
    assert http.get(f"{path}/events").json() == {"object": "list", "data": said, "has_more": False}


def test_a_change_is_seen_by_the_next_read(
    http: httpx.Client, sessions: sessionmaker[Session], job_id: str
) -> None:
    for tokens in (10, 11, 10):
        with sessions.begin() as session:
            session.execute(update(Job).where(Job.id == job_id).values(trained_tokens=tokens))
        shown = http.get(f"/v1/fine_tuning/jobs/{job_id}").json()
        assert shown["trained_tokens"] == tokens
        listed = http.get("/v1/fine_tuning/jobs?limit=1").json()["data"]
        assert listed == [shown]


def test_an_attribute_that_was_not_selected_fails_instead_of_reading_as_null() -> None:
    renderer = job_renderer("org")
    without_seed = [each for each in renderer.columns if each.key != "seed"]
    assert len(without_seed) == len(renderer.columns) - 1
    with pytest.raises(AttributeError, match="seed"):
        JobObject.of(_row_of(without_seed), organization_id="org")


def _row_of(columns: list[Any]) -> Any:
    method = {"type": "reinforcement", "reinforcement": {"hyperparameters": {}, "grader": {}}}
    values: dict[str, Any] = {each.key: None for each in columns}
    hyperparameters = {"batch_size": 1, "learning_rate_multiplier": 1, "n_epochs": 1}
    method["reinforcement"] = {"hyperparameters": hyperparameters, "grader": {"type": "python"}}
    return SimpleNamespace(**values | {"method": method, "error": None, "meta": None})


def test_a_huge_grader_is_shown_and_not_remembered(
    http: httpx.Client, api: Api, sessions: sessionmaker[Session], job_id: str
) -> None:
    with sessions.begin() as session:
        method = json.loads(json.dumps(session.get_one(Job, job_id).method))
        method["reinforcement"]["grader"]["name"] = "x" * (MAX_CHARS + 1)
        session.execute(update(Job).where(Job.id == job_id).values(method=method))
    remembered = api.app.state.parts.reads._show_job._remembered
    before = remembered.cache_info().currsize
    shown = http.get(f"/v1/fine_tuning/jobs/{job_id}").json()
    assert shown["method"]["reinforcement"]["grader"]["name"] == "x" * (MAX_CHARS + 1)
    assert remembered.cache_info().currsize == before


def test_what_is_refused_is_refused_as_everywhere(
    http: httpx.Client, job_id: str, new_key: Callable[..., str]
) -> None:
    path = f"/v1/fine_tuning/jobs/{job_id}"
    assert error_of(http.get(f"{path}/events?limit=many"), 400)["param"] == "limit"
    assert http.get(f"{path}/events?limit=0").status_code == 200
    assert http.get(f"{path}?limit=1").json() == http.get(path).json()
    assert "limti" in error_of(http.get(f"{path}/events?limti=1"), 400)["message"]
    assert error_of(http.get(path, headers={"authorization": ""}), 401)["code"] == "invalid_api_key"
    other = {"authorization": f"Bearer {new_key()}"}
    assert error_of(http.get(path, headers=other), 404)["code"] == "fine_tune_not_found"
    writer = {"authorization": f"Bearer {new_key('write')}"}
    assert error_of(http.get(path, headers=writer), 403)["code"] == "insufficient_scope"


def test_reads_go_on_after_the_database_has_closed_their_connections(postgres_url: str) -> None:
    engine = make_engine(postgres_url)
    with session_factory(engine).begin() as session:
        project = keys.create_project(session, "p").id
        _, secret = keys.create_key(session, project, "k")
    reads = Reads(postgres_url, organization_id="org")
    hashed = keys.hash_of(secret)
    assert reads._find_keys(None, [hashed])[hashed].project_id == project
    with engine.connect() as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        mine = "datname = current_database() AND pid <> pg_backend_pid()"
        assert connection.execute(text(f"{others} WHERE {mine}")).all()
    assert reads._keys._fetch(None, [hashed])[hashed].project_id == project
    reads.close()
    engine.dispose()
