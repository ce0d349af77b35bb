"""Databases, object store and settings for every test; servers start once per session."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.orm import Session, sessionmaker

from core.db import make_engine, parse_url, session_factory
from core.ids import random_text
from core.migrate import upgrade
from core.models import Base
from core.settings import Settings
from core.store import ObjectStore
from tests.servers import ACCESS_KEY, SECRET_KEY, S3Server, postgres_server, s3_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the object store as slow: SeaweedFS takes seconds to start."""
    for item in items:
        if "s3_server_session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """A fresh SQLite file with all tables."""
    path = tmp_path / "rft.db"
    shutil.copy(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'empty' / 'rft.db'}"


@pytest.fixture(scope="session")
def postgres_session() -> Iterator[str]:
    """A running Postgres 18: the URL of its administrative database."""
    with postgres_server() as admin_url:
        yield admin_url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_session: str) -> str:
    """A database with all tables, emptied after each test: creating one takes 0.3 s each time."""
    url = _create_database(postgres_session, "migrated")
    upgrade(url)
    return url


@pytest.fixture
def postgres_url(postgres_session: str, migrated_postgres: str) -> Iterator[str]:
    """A Postgres database with all tables and no rows."""
    yield migrated_postgres
    _administer(
        postgres_session,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'migrated'",
    )
    children_first = reversed(Base.metadata.sorted_tables)
    _administer(migrated_postgres, "; ".join(f"DELETE FROM {table}" for table in children_first))


@pytest.fixture
def empty_postgres_url(postgres_session: str) -> Iterator[str]:
    """A fresh Postgres database without tables."""
    name = f"test_{random_text(12).lower()}"
    yield _create_database(postgres_session, name)
    _administer(postgres_session, f"DROP DATABASE {name} WITH (FORCE)")


def _create_database(admin_url: str, name: str) -> str:
    _administer(admin_url, f"CREATE DATABASE {name}")
    return make_url(admin_url).set(database=name).render_as_string(hide_password=False)


def _administer(url: str, statement: str) -> None:
    engine = create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database with all tables; the test runs on both kinds."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def factory(database_url: str) -> Iterator[sessionmaker[Session]]:
    """The session factory of `database_url`."""
    engine = make_engine(database_url)
    yield session_factory(engine)
    engine.dispose()


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    """Settings with a fresh SQLite database and data folder; no server is started."""
    return Settings(
        database_url=sqlite_url, data_dir=tmp_path / "data", broker_url="redis://127.0.0.1:1/0"
    )


@pytest.fixture(scope="session")
def s3_server_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running SeaweedFS."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_settings(settings: Settings, s3_server_session: S3Server) -> Settings:
    """`settings` that also name the running object store and a bucket of this test's own."""
    return settings.model_copy(
        update={
            "s3_endpoint_url": s3_server_session.endpoint_url,
            "s3_access_key_id": ACCESS_KEY,
            "s3_secret_access_key": SecretStr(SECRET_KEY),
            "s3_bucket": f"test-{random_text(12).lower()}",
        }
    )


@pytest.fixture
def s3(s3_settings: Settings) -> ObjectStore:
    """An object store with an empty bucket."""
    store = ObjectStore.from_settings(s3_settings)
    store.ensure_bucket()
    return store
