"""A lab on SQLite and a real object store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.db import make_engine, session_factory
from core.keys import create_project
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore
from tests.fakes.memory_store import MemoryStore
from tests.fakes.tiny_model import make_tiny_model
from tests.workers.lab import Lab, RealLab
from workers.context import Context

MODELS = """
[[models]]
id = "base"
path = "base"
context_tokens = 2048
owned_by = "tests"
created = 1
"""


@pytest.fixture
def worker_settings(s3_settings: Settings, tmp_path: Path) -> Settings:
    """Settings with short leases."""
    models = tmp_path / "models.toml"
    models.write_text(MODELS)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text("{}")
    return s3_settings.model_copy(
        update={
            "models_file": models,
            "lease_ttl_s": 2.0,
            "heartbeat_s": 0.05,
            "trainer_engine": "transformers",
        }
    )


@pytest.fixture
def lab(worker_settings: Settings, s3: ObjectStore, tmp_path: Path) -> Iterator[Lab]:
    """A lab with an undisturbed script."""
    del s3  # its bucket exists now
    context = Context.open(worker_settings)
    yield Lab.open(context, tmp_path / "memory")
    context.sessions.kw["bind"].dispose()


@pytest.fixture
def postgres_lab(
    worker_settings: Settings, postgres_url: str, s3: ObjectStore, tmp_path: Path
) -> Iterator[Lab]:
    """A lab on Postgres."""
    del s3
    context = Context.open(worker_settings.model_copy(update={"database_url": postgres_url}))
    yield Lab.open(context, tmp_path / "memory")
    context.sessions.kw["bind"].dispose()


@pytest.fixture
def store() -> MemoryStore:
    """An object store in memory."""
    return MemoryStore()


@pytest.fixture
def context(settings: Settings, store: MemoryStore) -> Iterator[Context]:
    """What a light worker's task works with: a database with one project, and `store`."""
    engine = make_engine(settings.database_url)
    sessions = session_factory(engine)
    with sessions.begin() as session:
        create_project(session, "tests")
    yield Context(settings, sessions, store, Registry([], source=settings.models_file))
    engine.dispose()


@pytest.fixture
def real_lab(lab: Lab, tmp_path: Path) -> Lab:
    """The lab with the real trainer and a tiny model."""
    make_tiny_model(tmp_path / "base", positions=2048)
    lab.context.settings.trainer_dtype = "float32"
    lab.context.settings.trainer_threads = 1
    return RealLab(lab.context, lab.memory, lab.project_id)
