"""Migrations lead from nothing to exactly the models, and back."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from core.db import make_engine
from core.migrate import downgrade, upgrade
from core.models import Base


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


def test_up_from_empty_gives_the_models(empty_url: str) -> None:
    upgrade(empty_url)
    engine = make_engine(empty_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_upgrading_again_changes_nothing(empty_url: str) -> None:
    upgrade(empty_url)
    engine = make_engine(empty_url)
    before = sorted(inspect(engine).get_table_names())
    upgrade(empty_url)
    assert sorted(inspect(engine).get_table_names()) == before
    engine.dispose()


def test_down_to_base_leaves_no_table(empty_url: str) -> None:
    upgrade(empty_url)
    downgrade(empty_url, "base")
    engine = make_engine(empty_url)
    assert inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()


def test_jobs_of_before_train_and_dry_runs_do_not_go_back(empty_url: str) -> None:
    columns = (
        "project_id, status, model, method, hyperparameters, training_file, seed, created_at, seq,"
        " result_files, priority, fence, attempts, failed_attempts, step"
    )
    values = "'p', 'queued', 'm', '{}', '{}', 'f', 1, 1, 1, '[]', 0, 0, 0, 0, 0"
    upgrade(empty_url, "0001")
    engine = make_engine(empty_url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO projects (id, name, created_at) VALUES ('p', '', 1)"))
        connection.execute(text(f"INSERT INTO jobs (id, {columns}) VALUES ('old', {values})"))
    upgrade(empty_url)
    with engine.begin() as connection:
        insert = f"INSERT INTO jobs (id, kind, {columns}) VALUES ('dry', 'dry_run', {values})"
        connection.execute(text(insert))
        event = "INSERT INTO events (id, job_id, created_at, level, type, message)"
        for job in ("old", "dry"):
            row = f"('{job}', '{job}', 1, 'info', 'message', '')"
            connection.execute(text(f"{event} VALUES {row}"))
        kinds = connection.execute(text("SELECT id, kind FROM jobs ORDER BY id")).all()
        assert kinds == [("dry", "dry_run"), ("old", "training")]
    downgrade(empty_url, "0001")
    with engine.connect() as connection:
        for table in ("jobs", "events"):
            assert connection.execute(text(f"SELECT id FROM {table}")).scalars().all() == ["old"]
    engine.dispose()


def test_event_numbers_are_never_reused_on_sqlite(empty_sqlite_url: str) -> None:
    upgrade(empty_sqlite_url)
    engine = make_engine(empty_sqlite_url)
    with engine.connect() as connection:
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()
    engine.dispose()
    assert "sqlite_sequence" in names
