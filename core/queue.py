"""Messages that leave after commit: a row in the same transaction, sent later at least once.

A wake-up only tells a worker to look into the database; losing or repeating one is harmless.
A webhook becomes one delivery for each endpoint that wants it (`core.deliveries`).
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.models import Job, Outbox
from core.webhooks import new_event

#: Queue of the workers that train.
TRAIN = "train"
#: Queue of the workers that validate files and do other short work.
LIGHT = "light"
#: Wakes whoever runs evals: workers of the queue of light work, in a task of its own.
EVALS = "evals"
#: Wakes whoever proves that final models are served: workers of the queue of light work, too.
PROOFS = "proofs"
#: The task that delivers webhooks; it is sent to the queue of light work.
DELIVER = "workers.deliver"

#: How long a wake-up may wait, and a sent webhook is kept for people who look, in seconds: 3 days.
KEPT_S = 3 * 24 * 3600
#: How long a webhook waits for workers that are away; its 72 hours of tries begin afterwards.
UNSENT_WEBHOOK_KEPT_S = 7 * 24 * 3600

#: Which queue waits for jobs in which status.
_WAITING = {TRAIN: "queued", LIGHT: "validating_files"}


def enqueue_wake(session: Session, queue: str) -> None:
    """Ask for one wake-up message on `queue` once the caller's transaction commits."""
    session.add(Outbox(kind="wake", payload={"queue": queue}))


def enqueue_webhook(session: Session, project_id: str, type: str, object_id: str) -> None:
    """Record an event for the project's webhook endpoints in the caller's transaction.

    Raises InvalidRequest for a type that is not in `core.webhooks.EVENT_TYPES`.
    """
    event = new_event(type, object_id)
    session.add(Outbox(kind="webhook", payload={"project_id": project_id, "event": event}))


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
    sessions: sessionmaker[Session],
    send: Callable[[str, dict[str, Any]], None],
    *,
    limit: int = 100,
) -> int:
    """Send up to `limit` wake-ups as `send(kind, payload)`, delete them and return how many.

    No transaction is open while they are sent; two callers at once may send one twice. An exception
    of `send` propagates, and the next call sends all of them again.
    """
    with sessions() as session:
        rows = session.scalars(
            select(Outbox)
            .where(Outbox.sent_at.is_(None), Outbox.kind == "wake")
            .order_by(Outbox.id)
            .limit(limit)
        ).all()
    if not rows:
        return 0
    for row in rows:
        send(row.kind, row.payload)
    with sessions.begin() as session:
        session.execute(delete(Outbox).where(Outbox.id.in_([row.id for row in rows])))
    return len(rows)


def trim_outbox(session: Session, *, limit: int = 1000) -> int:
    """Delete up to `limit` old messages and return how many.

    A wake-up of `KEPT_S` has been repeated, a sent webhook of that age lives on in its deliveries.
    One that found no worker is kept for longer.
    """
    waits_still = (Outbox.kind == "webhook") & Outbox.sent_at.is_(None)
    old = session.scalars(
        select(Outbox.id)
        .where(
            Outbox.created_at < now() - KEPT_S,
            or_(~waits_still, Outbox.created_at < now() - UNSENT_WEBHOOK_KEPT_S),
        )
        .order_by(Outbox.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    session.execute(delete(Outbox).where(Outbox.id.in_(old)))
    return len(old)
