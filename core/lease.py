"""Claiming jobs: the database is the queue, a lease says who runs what.

A claim writes owner, expiry and a raised fence. The holder extends the lease by heartbeat; when it
expires, `reap_expired` puts the job back and raises the fence, so that the former holder, should it
still live, can write nothing more.
"""

from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core.clock import database_now
from core.errors import IllegalTransition, StaleFence
from core.models import Job
from core.states import HELD, transition


@dataclass(frozen=True)
class Claim:
    """A job that the caller now holds; every write for it carries `fence`."""

    job_id: str
    fence: int
    project_id: str


def claim(session: Session, *, owner: str, ttl_s: float) -> Claim | None:
    """Take the best queued job for `ttl_s` seconds, or return None when none is queued.

    Order: priority (high first), then the project with the fewest held jobs, then age.
    """
    while (job_id := _best_queued(session)) is not None:
        try:
            job = transition(
                session,
                job_id,
                "running",
                # Not "pausing", from which the state machine allows it too: that job has a holder.
                only_if=Job.status == "queued",
                lease_owner=owner,
                lease_expires_at=database_now() + ttl_s,
                attempts=Job.attempts + 1,
            )
        except IllegalTransition:
            continue  # another claimer took it between the SELECT and the UPDATE
        return Claim(job.id, job.fence, job.project_id)
    return None


def heartbeat(session: Session, job_id: str, fence: int, ttl_s: float) -> str:
    """Extend the lease to `ttl_s` seconds from now and return the job's status.

    Raises StaleFence when the job was cancelled, reaped or taken over.
    """
    status: str | None = session.scalar(
        update(Job)
        .where(Job.id == job_id, Job.fence == fence, Job.status.in_(HELD))
        .values(lease_expires_at=database_now() + ttl_s)
        .returning(Job.status)
    )
    if status is None:
        raise StaleFence(job_id, fence)
    return status


def reap_expired(session: Session) -> list[str]:
    """Take jobs from holders whose lease ran out; return their ids.

    A running job is queued again, one that was pausing is paused. Each counts as a failed attempt.
    """
    expired = Job.status.in_(HELD) & (Job.lease_expires_at < database_now())
    reaped = []
    # In one order everywhere, so that two reapers never wait for each other's rows.
    rows = session.execute(select(Job.id, Job.status).where(expired).order_by(Job.id)).all()
    for job_id, status in rows:
        to = "paused" if status == "pausing" else "queued"
        try:
            # `expired` is checked again in the UPDATE: a heartbeat may have come since the SELECT.
            transition(
                session,
                job_id,
                to,
                only_if=expired & (Job.status == status),
                message=f"Lost contact with the worker; job is {to} and keeps its checkpoints",
                failed_attempts=Job.failed_attempts + 1,
            )
        except IllegalTransition:
            continue
        reaped.append(job_id)
    return reaped


def _best_queued(session: Session) -> str | None:
    held = (
        select(Job.project_id, func.count().label("jobs"))
        .where(Job.status.in_(HELD))
        .group_by(Job.project_id)
        .subquery()
    )
    return session.scalar(
        select(Job.id)
        .outerjoin(held, held.c.project_id == Job.project_id)
        .where(Job.status == "queued")
        .order_by(Job.priority.desc(), func.coalesce(held.c.jobs, 0), Job.created_at, Job.seq)
        .limit(1)
    )
