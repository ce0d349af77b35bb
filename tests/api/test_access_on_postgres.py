"""Keys, limits, idempotency and the audit log on Postgres; other tests use SQLite."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from core.db import make_engine, session_factory
from core.keys import create_key, create_project
from core.settings import Settings
from tests.api.examples import job_body, jsonl
from tests.api.running import running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer

JOBS, KEYS, LOG = (
    "/v1/fine_tuning/jobs",
    "/v1/organization/api_keys",
    "/v1/organization/audit_logs",
)


@pytest.fixture
def http(settings: Settings, postgres_url: str) -> Iterator[httpx.Client]:
    """A client of an API on Postgres whose projects may have two live jobs."""
    engine = make_engine(postgres_url)
    sessions: sessionmaker[Session] = session_factory(engine)
    with sessions.begin() as session:
        secret = create_key(session, create_project(session, "p").id, "k", scopes=["all"])[1]
    engine.dispose()
    on_postgres = settings.model_copy(update={"database_url": postgres_url, "limit_live_jobs": 2})
    app = create_app(on_postgres, store=MemoryStore(), serving_transport=ModelServer().transport)
    headers = {"authorization": f"Bearer {secret}"}
    with running(app) as url, httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        yield client


def at_once(http: httpx.Client, path: str, body: object, **headers: str) -> list[httpx.Response]:
    """Send the same request six times at once."""
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(http.post(path, json=body, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return answers


def test_what_depends_on_locks_and_events(http: httpx.Client) -> None:
    file = http.post(
        "/v1/files", data={"purpose": "fine-tune"}, files={"file": ("f.jsonl", jsonl())}
    ).json()["id"]
    once = at_once(http, JOBS, job_body(file), **{"idempotency-key": "one"})
    assert len({each.json()["id"] for each in once if each.status_code == 200}) == 1
    assert {each.status_code for each in once} <= {200, 409}
    rest = at_once(http, JOBS, job_body(file))
    assert sorted(each.status_code for each in rest) == [200, 429, 429, 429, 429, 429]
    key_id = http.post(KEYS, json={"name": "x"}).json()["id"]
    http.delete(f"{KEYS}/{key_id}")
    log = [entry["type"] for entry in http.get(LOG).json()["data"]]
    assert log == [
        "api_key.deleted",
        "api_key.created",
        "fine_tuning.job.created",
        "fine_tuning.job.created",
        "file.created",
    ]


def test_an_id_that_postgres_refuses_is_nobody_elses_error(http: httpx.Client) -> None:
    """Jobs that are asked for at the same time share a query."""
    nobody = {"authorization": "Bearer nobody"}

    async def ask(url: httpx.URL, headers: httpx.Headers) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            bad = [client.get(f"{JOBS}/a%00b", headers=nobody) for _ in range(20)]
            good = [client.get(f"{JOBS}/ftjob-1", headers=headers) for _ in range(20)]
            pairs = zip(bad, good, strict=True)
            return await asyncio.gather(*(each for pair in pairs for each in pair))

    answers = asyncio.run(ask(http.base_url, http.headers))
    assert [each.status_code for each in answers] == [401, 404] * 20
    assert http.get(f"{JOBS}/a%00b").status_code == 404
