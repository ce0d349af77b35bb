"""Both databases behave alike: no upgrade deadlock, no half-read, foreign keys hold."""

import threading

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from core.clock import database_now, now
from core.db import make_engine, parse_url
from core.models import Event, Job
from tests.core.jobs import MakeJob


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres_urls_get_the_shipped_driver(scheme: str) -> None:
    url = parse_url(f"{scheme}://user:p%40ss@host/db")
    assert (url.drivername, url.password) == ("postgresql+psycopg", "p@ss")


def test_sqlite_runs_in_wal_mode_and_makes_its_folder(empty_sqlite_url: str) -> None:
    engine = make_engine(empty_sqlite_url)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    engine.dispose()


def test_a_write_takes_the_lock_at_once_and_a_read_none(sqlite_url: str) -> None:
    engine = make_engine(sqlite_url)
    statements: list[str] = []
    with engine.connect() as connection:
        connection.connection.driver_connection.set_trace_callback(statements.append)
        connection.execute(select(Job.id))
        assert not any("BEGIN" in statement for statement in statements)
        connection.execute(update(Job).values(attempts=0))
    engine.dispose()
    assert "BEGIN IMMEDIATE" in [statement.strip() for statement in statements]


def test_foreign_keys_hold(factory: sessionmaker[Session]) -> None:
    with pytest.raises(IntegrityError), factory.begin() as session:
        session.add(Event(job_id="ftjob-none", message="orphan"))


def test_reading_then_writing_in_many_transactions_at_once(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id, rounds, threads = make_job(), 10, 4
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(rounds):
                with factory.begin() as session:
                    session.get_one(Job, job_id)
                    session.execute(update(Job).values(attempts=Job.attempts + 1))
        except BaseException as error:
            failures.append(error)
            raise

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    with factory() as session:
        assert session.get_one(Job, job_id).attempts == rounds * threads


def test_an_open_reader_blocks_no_writer(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job()
    with factory() as reader:
        reader.get_one(Job, job_id)
        with factory.begin() as writer:
            writer.execute(update(Job).values(attempts=7))
        assert reader.scalar(select(Job.attempts)) == 7


def test_the_database_clock_is_unix_time(factory: sessionmaker[Session]) -> None:
    with factory() as session:
        seconds = session.scalar(select(database_now()))
    assert isinstance(seconds, float)
    assert abs(seconds - now()) < 60
