"""The queries whose SQL differs between databases, on SQLite and on Postgres."""

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from api.services import jobs, steering
from api.tenancy import Tenant
from core.db import make_engine, session_factory
from core.errors import IllegalTransition
from core.keys import create_key, create_project
from core.models import Job
from core.settings import Settings
from tests.api.examples import METHOD, error_of
from tests.api.running import running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer

ODD = "a b.c\"d'é[0]\\😀"


@pytest.fixture
def project_id(factory: sessionmaker[Session]) -> str:
    """A project with three jobs: without metadata, and with two kinds."""
    with factory.begin() as session:
        project = create_project(session, "p")
        for number, meta in enumerate([None, {"team": "a", ODD: "x"}, {"team": "b", "n": ""}]):
            session.add(
                Job(
                    id=f"ftjob-{number}",
                    project_id=project.id,
                    model="m",
                    method=METHOD,
                    training_file="file-1",
                    seed=1,
                    meta=meta,
                    created_at=number,
                )
            )
        return project.id


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (None, ["ftjob-2", "ftjob-1", "ftjob-0"]),
        ({}, ["ftjob-0"]),
        ({"team": "a"}, ["ftjob-1"]),
        ({"team": "a", ODD: "x"}, ["ftjob-1"]),
        ({"team": "b", ODD: "x"}, []),
        ({"n": ""}, ["ftjob-2"]),
        ({"other": ""}, []),
    ],
)
def test_metadata(
    factory: sessionmaker[Session],
    project_id: str,
    metadata: dict[str, str] | None,
    found: list[str],
) -> None:
    with factory() as session:
        tenant = Tenant(session=session, project_id=project_id)
        page = jobs.list_jobs(tenant, after=None, limit=None, metadata=metadata)
    assert [job.id for job in page.rows] == found


def test_pages(factory: sessionmaker[Session], project_id: str) -> None:
    with factory() as session:
        tenant = Tenant(session=session, project_id=project_id)
        page = jobs.list_jobs(tenant, after="ftjob-2", limit=1, metadata=None)
    assert [job.id for job in page.rows] == ["ftjob-1"] and page.has_more


def test_pausing_a_job_that_a_worker_claims_at_that_moment(
    factory: sessionmaker[Session], project_id: str
) -> None:
    """The route read "queued"; by the time it writes, the job runs: its worker must be told."""
    with factory.begin() as session:
        tenant = Tenant(session=session, project_id=project_id)
        job = session.get_one(Job, "ftjob-1")
        with factory.begin() as worker:
            worker.execute(Job.__table__.update().values(status="running"))
        assert steering.pause(tenant, job).status == "pausing"
    with factory.begin() as session:
        tenant = Tenant(session=session, project_id=project_id)
        with pytest.raises(IllegalTransition):
            steering.resume(tenant, session.get_one(Job, "ftjob-1"))


def test_a_character_that_postgres_cannot_hold(settings: Settings, postgres_url: str) -> None:
    on_postgres = settings.model_copy(update={"database_url": postgres_url})
    engine = make_engine(postgres_url)
    with session_factory(engine).begin() as session:
        secret = create_key(session, create_project(session, "p").id, "k")[1]
    engine.dispose()
    app = create_app(on_postgres, store=MemoryStore(), serving_transport=ModelServer().transport)
    headers = {"authorization": f"Bearer {secret}"}
    with running(app) as url, httpx.Client(base_url=url, headers=headers) as http:
        for path in ("files/%00", "models/%00", "files?after=%00", "files?purpose=%00"):
            error_of(http.get(f"/v1/{path}"), 400)
        assert http.get("/v1/files").json()["data"] == []
