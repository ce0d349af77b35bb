"""Claims: one winner, in a fair order, for as long as the heart beats."""

import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Queue, get_context
from multiprocessing.synchronize import Barrier

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core import lease
from core.db import make_engine, session_factory
from core.errors import StaleFence
from core.keys import create_project
from core.lease import Claim, claim, heartbeat, reap_expired
from core.models import Event, Job, Outbox
from core.states import transition
from tests.core.jobs import MakeJob


def take(factory: sessionmaker[Session], owner: str = "w1", ttl_s: float = 60) -> Claim | None:
    with factory.begin() as session:
        return claim(session, owner=owner, ttl_s=ttl_s)


def expire(factory: sessionmaker[Session], job_id: str) -> None:
    with factory.begin() as session:
        session.execute(update(Job).where(Job.id == job_id).values(lease_expires_at=1.0))


def drain_claims(url: str, owner: str) -> list[str]:
    """Claim until nothing is queued; runs in threads and in processes."""
    engine = make_engine(url)
    factory, claimed = session_factory(engine), []
    while (taken := take(factory, owner)) is not None:
        claimed.append(taken.job_id)
    engine.dispose()
    return claimed


def drain_in_process(url: str, owner: str, barrier: Barrier, results: "Queue[list[str]]") -> None:
    barrier.wait()
    results.put(drain_claims(url, owner))


def test_a_claim_holds_the_job(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job(fence=4)
    taken = take(factory)
    with factory() as session:
        job = session.get_one(Job, job_id)
    assert taken == Claim(job_id, 5, job.project_id)
    assert (job.status, job.lease_owner, job.attempts, job.fence) == ("running", "w1", 1, 5)
    assert take(factory) is None


def test_claims_from_threads_are_exclusive(
    factory: sessionmaker[Session], make_job: MakeJob, database_url: str
) -> None:
    jobs = {make_job() for _ in range(12)}
    barrier = threading.Barrier(4)

    def run(owner: str) -> list[str]:
        barrier.wait()
        return drain_claims(database_url, owner)

    with ThreadPoolExecutor(4) as pool:
        claimed = [job for part in pool.map(run, "abcd") for job in part]
    assert sorted(claimed) == sorted(jobs)
    with factory() as session:
        assert set(session.scalars(select(Job.attempts))) == {1}
        assert len(session.scalars(select(Event)).all()) == 12


def test_claims_from_processes_are_exclusive(make_job: MakeJob, database_url: str) -> None:
    jobs = {make_job() for _ in range(8)}
    context = get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    processes = [
        context.Process(target=drain_in_process, args=(database_url, owner, barrier, results))
        for owner in "ab"
    ]
    for process in processes:
        process.start()
    claimed = results.get(timeout=60) + results.get(timeout=60)
    for process in processes:
        process.join()
    assert sorted(claimed) == sorted(jobs)


def test_the_loser_of_a_race_takes_the_next_job(
    factory: sessionmaker[Session], make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_job(created_at=1), make_job(created_at=2)
    choose = lease._best_queued
    rival: list[Claim | None] = []

    def choose_then_lose(session: Session) -> str | None:
        chosen = choose(session)
        if not rival:
            monkeypatch.setattr(lease, "_best_queued", choose)
            rival.append(take(factory, "rival"))
        return chosen

    monkeypatch.setattr(lease, "_best_queued", choose_then_lose)
    taken = take(factory, "slow")
    assert rival[0] is not None and rival[0].job_id == first
    assert taken is not None and taken.job_id == second


def test_a_job_that_a_rival_took_and_its_user_paused_is_not_taken_again(
    factory: sessionmaker[Session], make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = make_job()
    choose = lease._best_queued
    rival: list[Claim | None] = []

    def choose_then_lose(session: Session) -> str | None:
        chosen = choose(session)
        if not rival:
            monkeypatch.setattr(lease, "_best_queued", choose)
            rival.append(take(factory, "rival"))
            with factory.begin() as other:
                transition(other, job_id, "pausing")
        return chosen

    monkeypatch.setattr(lease, "_best_queued", choose_then_lose)
    assert take(factory, "slow") is None
    with factory() as session:
        job = session.get_one(Job, job_id)
    assert rival == [Claim(job_id, job.fence, job.project_id)]
    assert (job.status, job.lease_owner, job.attempts) == ("pausing", "rival", 1)


def test_order_is_priority_then_fair_share_then_age(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    with factory.begin() as session:
        other = create_project(session, "other").id
    make_job(status="running")
    old = make_job(created_at=1)
    fair = make_job(created_at=2, project_id=other)
    fair_later = make_job(created_at=3, project_id=other)
    urgent = make_job(created_at=4, priority=1)
    order = [take(factory) for _ in range(4)]
    # `urgent` makes it two held jobs against none, `fair` two against one, `fair_later` two all.
    assert [each and each.job_id for each in order] == [urgent, fair, fair_later, old]


def test_equal_shares_go_by_age(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    younger, older = make_job(created_at=2), make_job(created_at=1)
    order = [take(factory) for _ in range(2)]
    assert [each and each.job_id for each in order] == [older, younger]


def test_a_heartbeat_extends_and_tells_the_status(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job()
    taken = take(factory)
    assert taken is not None
    expire(factory, job_id)
    with factory.begin() as session:
        assert heartbeat(session, job_id, taken.fence, 60) == "running"
    with factory.begin() as session:
        assert reap_expired(session) == []
        transition(session, job_id, "pausing")
    with factory.begin() as session:
        assert heartbeat(session, job_id, taken.fence, 60) == "pausing"
        transition(session, job_id, "cancelled")
    with factory.begin() as session, pytest.raises(StaleFence):
        heartbeat(session, job_id, taken.fence, 60)


def test_an_expired_lease_is_reaped(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    running, pausing, alive = make_job(created_at=1), make_job(created_at=2), make_job(created_at=3)
    claims = [take(factory) for _ in range(3)]
    with factory.begin() as session:
        transition(session, pausing, "pausing")
    expire(factory, running)
    expire(factory, pausing)
    with factory.begin() as session:
        assert sorted(reap_expired(session)) == sorted([running, pausing])
    with factory() as session:
        rows = {job.id: job for job in session.scalars(select(Job))}
        wakes = session.scalars(select(Outbox.payload).where(Outbox.kind == "wake")).all()
    assert [rows[each].status for each in (running, pausing, alive)] == [
        "queued",
        "paused",
        "running",
    ]
    assert rows[running].fence > claims[0].fence and rows[pausing].fence > claims[1].fence
    assert (rows[running].failed_attempts, rows[alive].failed_attempts) == (1, 0)
    assert wakes == [{"queue": "train"}]


def test_the_former_holder_is_locked_out_after_a_takeover(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job()
    first = take(factory, "first")
    expire(factory, job_id)
    with factory.begin() as session:
        reap_expired(session)
    second = take(factory, "second")
    assert first and second and second.fence > first.fence
    with factory.begin() as session, pytest.raises(StaleFence):
        heartbeat(session, job_id, first.fence, 60)
    with factory.begin() as session:
        assert heartbeat(session, job_id, second.fence, 60) == "running"


def test_a_heartbeat_that_comes_during_the_reaping_saves_the_job(
    factory: sessionmaker[Session], make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = make_job()
    taken = take(factory)
    assert taken is not None
    expire(factory, job_id)

    def beat_first(session: Session, *args: object, **kwargs: object) -> Job:
        with factory.begin() as other:
            heartbeat(other, job_id, taken.fence, 60)
        return transition(session, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(lease, "transition", beat_first)
    with factory.begin() as session:
        assert reap_expired(session) == []
    with factory.begin() as session:
        assert heartbeat(session, job_id, taken.fence, 60) == "running"


def test_the_second_holder_resumes(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job()
    take(factory)
    with factory.begin() as session:
        transition(session, job_id, "queued", message="Handed back")
    take(factory, owner="w2")
    with factory() as session:
        messages = session.scalars(select(Event.message).order_by(Event.seq)).all()
    assert messages == ["Fine-tuning job started", "Handed back", "Fine-tuning job resumed"]
