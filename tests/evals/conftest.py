"""A worker on a database of its own, an object store in memory, and a model server to script."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.db import make_engine, session_factory
from core.keys import create_project
from core.settings import Settings
from tests.evals.bench import Lab, ModelScript, Worker
from tests.fakes.memory_store import MemoryStore

MODELS = """
[[models]]
id = "base-1-2024"
path = "base-1"
aliases = ["base-1"]
context_tokens = 2048
owned_by = "lab"
created = 1700000000
"""


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    """Settings of a worker with one base model."""
    models = tmp_path / "models.toml"
    models.write_text(MODELS)
    return Settings(
        database_url=sqlite_url,
        models_file=models,
        data_dir=tmp_path / "data",
        serving_url="http://serving.test",
        serving_token="serving-token",
        heartbeat_s=0.05,
        lease_ttl_s=2.0,
        eval_concurrency=4,
    )


def open_lab(settings: Settings) -> Iterator[Lab]:
    """A lab with one project; its model answers `Hello` until it is told otherwise."""
    engine = make_engine(settings.database_url)
    sessions = session_factory(engine)
    with sessions.begin() as session:
        project_id = create_project(session, "lab").id
    model = ModelScript()
    worker = Worker(settings, sessions, MemoryStore(), model.transport)
    yield Lab(worker, model, project_id)
    engine.dispose()


@pytest.fixture
def lab(settings: Settings) -> Iterator[Lab]:
    """A lab on SQLite."""
    yield from open_lab(settings)


@pytest.fixture
def postgres_lab(settings: Settings, postgres_url: str) -> Iterator[Lab]:
    """A lab on Postgres."""
    yield from open_lab(settings.model_copy(update={"database_url": postgres_url}))
