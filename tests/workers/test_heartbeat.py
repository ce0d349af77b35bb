"""Holding a lease from a thread."""

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from core.lease import claim
from core.models import Job
from core.states import transition
from tests.workers.lab import wait_for
from workers.supervisor import heartbeat
from workers.supervisor.heartbeat import Heartbeat


@pytest.fixture
def held(lab):
    lab.queued_job()
    with lab.context.sessions.begin() as session:
        return claim(session, owner="me", ttl_s=1.0)


def beat(lab, held, ttl_s: float = 60.0) -> Heartbeat:
    return Heartbeat(lab.context.sessions, held.job_id, held.fence, ttl_s=ttl_s, interval_s=0.02)


def test_lease_is_extended(lab, held) -> None:
    first = lab.job(held.job_id).lease_expires_at
    with beat(lab, held):
        wait_for(lambda: lab.job(held.job_id).lease_expires_at > first + 30)


def test_pause_wish_is_heard(lab, held) -> None:
    with beat(lab, held) as heart:
        lab.move(held.job_id, "pausing")
        wait_for(lambda: heart.status == "pausing")
        assert not heart.lost


def test_cancelled_job_is_lost(lab, held) -> None:
    with beat(lab, held) as heart:
        lab.move(held.job_id, "cancelled")
        wait_for(lambda: heart.lost)


def test_silent_database_is_waited_for_no_longer_than_the_lease(lab, held, monkeypatch) -> None:
    def silent(*_arguments: object) -> str:
        raise OperationalError("UPDATE", {}, Exception("no connection"))

    monkeypatch.setattr(heartbeat, "heartbeat", silent)
    with beat(lab, held, ttl_s=0.2) as heart:
        wait_for(lambda: heart.lost)


@pytest.mark.parametrize(
    "trouble",
    [
        OperationalError("UPDATE", {}, Exception("no connection")),
        InterfaceError("UPDATE", {}, Exception("connection already closed")),
        PoolTimeout("no connection in the pool"),
    ],
)
def test_database_that_comes_back_in_time_is_forgiven(
    lab, held, monkeypatch, trouble: SQLAlchemyError
) -> None:
    real, calls = heartbeat.heartbeat, []

    def hiccup(*arguments: object) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise trouble
        return real(*arguments)

    monkeypatch.setattr(heartbeat, "heartbeat", hiccup)
    with beat(lab, held) as heart:
        wait_for(lambda: len(calls) > 5)
        assert not heart.lost
    with lab.context.sessions.begin() as session:
        assert session.get_one(Job, held.job_id).status == "running"
        transition(session, held.job_id, "cancelled")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_heart_that_stops_for_any_reason_loses_the_job(lab, held, monkeypatch) -> None:
    def broken(*_arguments: object) -> str:
        raise ValueError("nobody thought of this")

    monkeypatch.setattr(heartbeat, "heartbeat", broken)
    with beat(lab, held) as heart:
        wait_for(lambda: heart.lost, timeout_s=10)
