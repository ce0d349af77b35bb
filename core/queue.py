"""Messages that leave after commit: a row in the same transaction, sent later at least once.

A wake-up only tells a worker to look into the database; losing or repeating one is harmless.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from core.clock import now
from core.ids import new_id
from core.models import Job, Outbox

#: Queue of the workers that train.
TRAIN = "train"
#: Queue of the workers that validate files and do other short work.
LIGHT = "light"

#: How long a message may wait, and a sent one is kept for people who look, in seconds: 3 days.
KEPT_S = 3 * 24 * 3600

#: Which queue waits for jobs in which status.
_WAITING = {TRAIN: "queued", LIGHT: "validating_files"}


def enqueue_wake(session: Session, queue: str) -> None:
    """Ask for one wake-up message on `queue` once the caller's transaction commits."""
    session.add(Outbox(kind="wake", payload={"queue": queue}))


def enqueue_webhook(session: Session, job: Job) -> None:
    """Record the webhook event of a job that reached a terminal status."""
    event = {
        "id": new_id("evt_"),
        "object": "event",
        "created_at": now(),
        "type": f"fine_tuning.job.{job.status}",
        "data": {"id": job.id},
    }
    session.add(Outbox(kind="webhook", payload={"project_id": job.project_id, "event": event}))


def resend_wakes(session: Session) -> list[str]:
    """Write a wake-up for every queue that has waiting jobs; return those queues.

    Run regularly: it makes up for messages that the broker or a dying worker lost.
    """
    waiting = [
        queue
        for queue, status in _WAITING.items()
        if session.scalar(select(exists().where(Job.status == status)))
    ]
    for queue in waiting:
        enqueue_wake(session, queue)
    return waiting


def drain_outbox(
    session: Session,
    send: Callable[[str, dict[str, Any]], None],
    *,
    kinds: Sequence[str] = ("wake",),
    limit: int = 100,
) -> int:
    """Send up to `limit` unsent messages as `send(kind, payload)` and return how many.

    An exception of `send` propagates; the caller's rollback keeps the messages for the next call.
    A wake-up is deleted once sent, a webhook keeps its row with `sent_at`.
    """
    rows = session.scalars(
        select(Outbox)
        .where(Outbox.sent_at.is_(None), Outbox.kind.in_(kinds))
        .order_by(Outbox.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    for row in rows:
        send(row.kind, row.payload)
        if row.kind == "wake":
            session.delete(row)
        else:
            row.sent_at = now()
    return len(rows)


def trim_outbox(session: Session, *, limit: int = 1000) -> int:
    """Delete up to `limit` messages older than `KEPT_S`, sent or not, and return how many.

    A wake-up so old has been repeated, and nobody waits for so old a webhook.
    """
    old = session.scalars(
        select(Outbox.id)
        .where(Outbox.created_at < now() - KEPT_S)
        .order_by(Outbox.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    session.execute(delete(Outbox).where(Outbox.id.in_(old)))
    return len(old)
