"""A database as it looks after a year: many jobs, events and samples, on SQLite or Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, insert, make_url, text

from core.db import make_engine, session_factory
from core.keys import create_key, create_project
from core.migrate import upgrade
from core.models import Base, Event, Job, Sample
from tests.servers import postgres_server

JOBS, EVENTS, SAMPLES = 10_000, 1_000_000, 100_000
#: Jobs whose events are read: one has a thousand events, the other most of the million.
SHORT, LONG = "ftjob-short", "ftjob-long"
SHORT_EVENTS = 1_000
_BATCH = 20_000


@dataclass(frozen=True)
class World:
    """A filled database and a key for its only project."""

    database_url: str
    key: str
    jobs: list[str]


@contextmanager
def sqlite_world(folder: Path) -> Iterator[World]:
    """Fill a SQLite file in `folder`."""
    yield _fill(f"sqlite:///{folder / 'world.db'}")


@contextmanager
def postgres_world(_folder: Path) -> Iterator[World]:
    """Fill a database of a Postgres that runs until the block ends."""
    with postgres_server() as admin_url:
        admin = create_engine(
            make_url(admin_url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        with admin.connect() as connection:
            connection.execute(text("CREATE DATABASE world"))
        admin.dispose()
        url = make_url(admin_url).set(database="world")
        yield _fill(url.render_as_string(hide_password=False))


def _fill(url: str) -> World:
    upgrade(url)
    engine = make_engine(url)
    with session_factory(engine).begin() as session:
        project = create_project(session, "bench").id
        _, secret = create_key(session, project, "bench")
    jobs = [SHORT, LONG, *(f"ftjob-{number:024d}" for number in range(JOBS - 2))]
    with engine.begin() as connection:
        _insert(connection, Job, (_job(project, id, n) for n, id in enumerate(jobs)))
        _insert(connection, Event, (_event(n) for n in range(EVENTS)))
        _insert(connection, Sample, (_sample(n) for n in range(SAMPLES)))
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()
    return World(database_url=url, key=secret, jobs=jobs)


def _insert(connection: Connection, table: type[Base], rows: Iterator[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            connection.execute(insert(table), batch)
            batch = []
    if batch:
        connection.execute(insert(table), batch)


def _job(project: str, id: str, number: int) -> dict[str, Any]:
    grader = {
        "type": "string_check",
        "name": "exact",
        "input": "{{sample.output_text}}",
        "reference": "{{item.answer}}",
        "operation": "eq",
    }
    hyperparameters = {
        "batch_size": 8,
        "compute_multiplier": 1.0,
        "eval_interval": 10,
        "eval_samples": 64,
        "learning_rate_multiplier": 1.0,
        "n_epochs": 1,
        "reasoning_effort": "default",
    }
    return {
        "id": id,
        "project_id": project,
        "status": "succeeded",
        "model": "base-1-2024",
        "method": {
            "type": "reinforcement",
            "reinforcement": {"grader": grader, "hyperparameters": hyperparameters},
        },
        "hyperparameters": hyperparameters,
        "training_file": "file-" + "a" * 24,
        "validation_file": "file-" + "b" * 24,
        "seed": number,
        "created_at": 1_700_000_000 + number,
        "seq": number,
        "finished_at": 1_700_001_000 + number,
        "fine_tuned_model": f"ft:base-1-2024:org::{number:08d}",
        "trained_tokens": 123_456,
        "result_files": ["file-" + "c" * 24],
        "meta": {"team": "support", "run": str(number)},
    }


def _event(number: int) -> dict[str, Any]:
    job = SHORT if number < SHORT_EVENTS else LONG
    data = {
        "step": number,
        "total_steps": EVENTS,
        "train_mean_reward": (number % 100) / 100,
        "completion_tokens_mean": 31.5,
        "mean_unresponsive_rewards": 0.0,
    }
    return {
        "id": f"ftevent-{number:024d}",
        "job_id": job,
        "created_at": 1_700_000_000 + number,
        "level": "info",
        "type": "metrics",
        "message": f"Step {number}/{EVENTS} , train mean reward={(number % 100) / 100:.2f}",
        "data": data,
        "phase": "rl",
        "step": number,
    }


def _sample(number: int) -> dict[str, Any]:
    return {
        "id": f"sample_{number:024d}",
        "job_id": LONG,
        "split": "train",
        "step": number // 64,
        "position": number % 64,
        "row": number % 500,
        "group_number": number % 64 // 8,
        "reward": (number % 10) / 10,
        "advantage": (number % 10) / 10 - 0.45,
        "truncated": number % 50 == 0,
        "preview": f"Answer {number}",
        "tokens": 32,
        "sub_scores": {"exact": number % 2},
    }
