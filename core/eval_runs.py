"""Eval runs as a queue: claiming one, holding it, and how it ends.

    queued → in_progress → completed | failed,   queued | in_progress → canceled

As with jobs (see `core.lease`), a claim writes owner, expiry and a raised fence, and every write of
the holder is refused once the fence is higher. A run whose holder is gone is queued again and goes
on behind the items that are stored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, exists, func, select, update
from sqlalchemy.orm import Session, sessionmaker

from core.clock import database_now, now
from core.errors import StaleFence
from core.events import storable
from core.models import EvalItem, EvalRun
from core.queue import enqueue_webhook

QUEUED, IN_PROGRESS = "queued", "in_progress"
COMPLETED, FAILED, CANCELED = "completed", "failed", "canceled"
#: Every status, in OpenAI's spelling.
STATUSES = (QUEUED, IN_PROGRESS, COMPLETED, FAILED, CANCELED)
LIVE = (QUEUED, IN_PROGRESS)

#: The webhook that an end sends; OpenAI calls a completed run succeeded there.
_WEBHOOKS = {
    COMPLETED: "eval.run.succeeded",
    FAILED: "eval.run.failed",
    CANCELED: "eval.run.canceled",
}


@dataclass(frozen=True)
class HeldRun:
    """A run that the caller holds; `attempts` counts claims without a stored item between."""

    run_id: str
    eval_id: str
    project_id: str
    fence: int
    attempts: int


def claim(session: Session, *, owner: str, ttl_s: float) -> HeldRun | None:
    """Take the oldest queued run of the project with the fewest held ones, for `ttl_s` seconds."""
    while (run_id := session.scalar(_best_queued())) is not None:
        run: EvalRun | None = session.scalar(
            update(EvalRun)
            .where(EvalRun.id == run_id, EvalRun.status == QUEUED)
            .values(
                status=IN_PROGRESS,
                fence=EvalRun.fence + 1,
                attempts=EvalRun.attempts + 1,
                lease_owner=owner,
                lease_expires_at=database_now() + ttl_s,
            )
            .returning(EvalRun)
        )
        if run is not None:  # else another worker took it between the SELECT and the UPDATE
            return HeldRun(run.id, run.eval_id, run.project_id, run.fence, run.attempts)
    return None


def heartbeat(session: Session, held: HeldRun, ttl_s: float) -> None:
    """Hold the run for `ttl_s` seconds more; raises StaleFence when it was canceled or taken."""
    extended = session.scalar(
        update(EvalRun)
        .where(
            EvalRun.id == held.run_id,
            EvalRun.fence == held.fence,
            EvalRun.status == IN_PROGRESS,
        )
        .values(lease_expires_at=database_now() + ttl_s)
        .returning(EvalRun.id)
    )
    if extended is None:
        raise StaleFence(held.run_id, held.fence)


@contextmanager
def held_run(sessions: sessionmaker[Session], held: HeldRun) -> Iterator[tuple[Session, EvalRun]]:
    """Open a transaction of the holder; raises StaleFence when it holds the run no longer."""
    with sessions.begin() as session:
        # Writing the row first locks it: a cancel waits for this transaction, or it for the cancel.
        run: EvalRun | None = session.scalar(
            update(EvalRun)
            .where(EvalRun.id == held.run_id, EvalRun.fence == held.fence)
            .values(fence=held.fence)
            .returning(EvalRun)
        )
        if run is None:
            raise StaleFence(held.run_id, held.fence)
        yield session, run


def end(session: Session, run: EvalRun, status: str, error: dict[str, str] | None = None) -> None:
    """End a run that the caller's transaction has locked, and record its webhook."""
    run.status, run.finished_at = status, now()
    run.error = error and {name: storable(text) for name, text in error.items()}
    run.lease_owner = run.lease_expires_at = None
    run.fence = run.fence + 1
    enqueue_webhook(session, run.project_id, _WEBHOOKS[status], run.id)


def cancel(session: Session, run_id: str) -> bool:
    """Cancel a live run; returns False when it has ended already."""
    run: EvalRun | None = session.scalar(
        update(EvalRun)
        .where(EvalRun.id == run_id, EvalRun.status.in_(LIVE))
        .values(status=CANCELED)
        .returning(EvalRun)
    )
    if run is None:
        return False
    end(session, run, CANCELED)
    return True


def give_back(run: EvalRun, *, counts: bool) -> None:
    """Queue a held run again; `counts` says whether this was an attempt that failed."""
    run.status, run.fence = QUEUED, run.fence + 1
    run.lease_owner = run.lease_expires_at = None
    if not counts:
        run.attempts = max(0, run.attempts - 1)


def reap_expired(session: Session) -> list[str]:
    """Queue the runs of holders whose lease ran out; returns their ids."""
    expired = (EvalRun.status == IN_PROGRESS) & (EvalRun.lease_expires_at < database_now())
    ids = session.scalars(select(EvalRun.id).where(expired).order_by(EvalRun.id)).all()
    reaped = []
    for run_id in ids:
        # `expired` is checked again: a heartbeat may have come since the SELECT.
        values: dict[str, Any] = {"status": QUEUED, "fence": EvalRun.fence + 1}
        taken = session.scalar(
            update(EvalRun)
            .where(EvalRun.id == run_id, expired)
            .values(**values, lease_owner=None, lease_expires_at=None)
            .returning(EvalRun.id)
        )
        if taken is not None:
            reaped.append(run_id)
    return reaped


def forget_items(session: Session, *, limit: int) -> int:
    """Delete up to `limit` items of deleted runs; returns how many there were."""
    found = (
        select(EvalItem.id)
        .join(EvalRun, EvalRun.id == EvalItem.run_id)
        .where(EvalRun.deleted_at.is_not(None))
        .limit(limit)
    )
    ids = session.scalars(found).all()
    session.execute(delete(EvalItem).where(EvalItem.id.in_(ids)))
    return len(ids)


def live_runs(session: Session, project_id: str) -> int:
    """Count the project's runs that have not ended."""
    query = select(func.count()).select_from(EvalRun)
    alive = EvalRun.status.in_(LIVE)
    return session.scalar(query.where(EvalRun.project_id == project_id, alive)) or 0


def any_queued(session: Session) -> bool:
    """Return whether a run waits for a worker."""
    return bool(session.scalar(select(exists().where(EvalRun.status == QUEUED))))


def _best_queued() -> Select[str]:
    held = (
        select(EvalRun.project_id, func.count().label("runs"))
        .where(EvalRun.status == IN_PROGRESS)
        .group_by(EvalRun.project_id)
        .subquery()
    )
    return (
        select(EvalRun.id)
        .outerjoin(held, held.c.project_id == EvalRun.project_id)
        .where(EvalRun.status == QUEUED)
        .order_by(func.coalesce(held.c.runs, 0), EvalRun.created_at, EvalRun.seq)
        .limit(1)
    )
