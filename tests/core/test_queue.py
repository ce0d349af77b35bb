"""The outbox: sent at least once, after commit, and again when it got lost."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.lease import claim
from core.models import Outbox
from core.queue import (
    KEPT_S,
    UNSENT_WEBHOOK_KEPT_S,
    drain_outbox,
    enqueue_wake,
    resend_wakes,
    trim_outbox,
)
from core.states import transition
from tests.core.jobs import MakeJob

Sent = list[tuple[str, dict[str, Any]]]


def drain(factory: sessionmaker[Session]) -> Sent:
    sent: Sent = []
    drain_outbox(factory, lambda kind, payload: sent.append((kind, payload)))
    return sent


def test_a_wake_up_leaves_once(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session:
        enqueue_wake(session, "light")
    assert drain(factory) == [("wake", {"queue": "light"})]
    assert drain(factory) == []


def test_nothing_leaves_before_commit(factory: sessionmaker[Session]) -> None:
    with factory() as session:
        enqueue_wake(session, "light")
        session.rollback()
    assert drain(factory) == []


def test_an_unreachable_broker_loses_nothing(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session:
        enqueue_wake(session, "light")

    def refuse(kind: str, payload: dict[str, Any]) -> None:
        raise ConnectionError(kind, payload)

    with pytest.raises(ConnectionError):
        drain_outbox(factory, refuse)
    assert drain(factory) == [("wake", {"queue": "light"})]


def test_no_connection_is_held_while_a_wake_up_is_sent(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session:
        enqueue_wake(session, "light")
    held: list[int] = []
    drain_outbox(factory, lambda *_: held.append(factory.kw["bind"].pool.checkedout()))
    assert held == [0]


def test_a_lost_wake_up_is_sent_again(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job(status="validating_files")
    with factory.begin() as session:
        transition(session, job_id, "queued")
    lost = drain(factory)
    with factory.begin() as session:
        assert resend_wakes(session) == ["train"]
    assert drain(factory) == lost == [("wake", {"queue": "train"})]
    with factory.begin() as session:
        taken = claim(session, owner="w1", ttl_s=60)
    assert taken is not None and taken.job_id == job_id


def test_only_waiting_jobs_are_woken(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    make_job(status="running")
    make_job(status="paused")
    with factory.begin() as session:
        assert resend_wakes(session) == []
    make_job(status="validating_files")
    with factory.begin() as session:
        assert resend_wakes(session) == ["light"]


def test_a_webhook_is_no_wake_up(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job()
    with factory.begin() as session:
        transition(session, job_id, "cancelled")
    assert drain(factory) == []
    with factory() as session:
        waiting = session.scalars(select(Outbox)).one()
    assert (waiting.kind, waiting.sent_at) == ("webhook", None)
    assert waiting.payload["event"]["type"] == "fine_tuning.job.cancelled"
    assert waiting.payload["event"]["data"] == {"id": job_id}


def test_old_messages_are_deleted_a_few_at_a_time_but_no_webhook_that_still_waits(
    factory: sessionmaker[Session],
) -> None:
    old, young = now() - KEPT_S - 60, now() - KEPT_S + 60
    ancient = now() - UNSENT_WEBHOOK_KEPT_S - 60
    rows = [
        ("webhook", ancient, None),
        ("webhook", old, old),
        ("webhook", old, None),
        ("webhook", young, young),
        ("wake", old, None),
        ("wake", young, None),
    ]
    with factory.begin() as session:
        for kind, created_at, sent_at in rows:
            payload = {"queue": "light"}
            row = Outbox(kind=kind, payload=payload, created_at=created_at, sent_at=sent_at)
            session.add(row)
    with factory.begin() as session:
        assert trim_outbox(session, limit=2) == 2
        assert trim_outbox(session, limit=2) == 1
        assert trim_outbox(session, limit=2) == 0
        left = session.execute(select(Outbox.kind, Outbox.created_at)).all()
    assert [tuple(row) for row in left] == [("webhook", old), ("webhook", young), ("wake", young)]
