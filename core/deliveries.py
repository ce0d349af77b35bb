"""Deliveries: one event on its way to one endpoint, tried until it arrives or 72 hours are over.

An event becomes one row for each endpoint of its project that wants it. A worker claims a row
(`core.delivery_claims`), sends the message outside of any transaction and records the outcome under
the number of its attempt, so that a holder that was too slow changes nothing. Due times and leases
follow the database's clock.
"""

import random
from typing import Any

from sqlalchemy import BigInteger, cast, delete, func, or_, select, update
from sqlalchemy.orm import Session

from core import audit
from core.clock import database_now, now
from core.delivery_claims import LEASE_S, Claimed
from core.ids import new_id
from core.models import Outbox, WebhookDelivery, WebhookEndpoint
from core.webhooks import Outcome

#: Seconds that a message is tried for, and that its delivery is kept once it is over.
TRIED_S = 72 * 3600
KEPT_S = 30 * 24 * 3600
#: Seconds between the first attempts; then `LAST_WAIT_S` each time. Each is 20 % longer or shorter.
WAITS_S = (5, 30, 120, 300, 900, 1800, 3600, 7200, 14_400)
LAST_WAIT_S = 28_800
JITTER = 0.2


def fan_out(session: Session, *, limit: int = 100) -> int:
    """Make deliveries of up to `limit` events of the outbox and return how many events.

    Of two callers at the same time each event belongs to exactly one.
    """
    waiting = session.scalars(
        select(Outbox.id)
        .where(Outbox.sent_at.is_(None), Outbox.kind == "webhook")
        .order_by(Outbox.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if not waiting:
        return 0  # on SQLite, the update would lock out all other writers for nothing
    # SQLite locks no rows: there, this update decides.
    taken = session.execute(
        update(Outbox)
        .where(Outbox.id.in_(waiting), Outbox.sent_at.is_(None))
        .values(sent_at=now())
        .returning(Outbox.id, Outbox.payload)
    ).all()
    for _, payload in sorted(taken, key=lambda row: row.id):
        _deliver_to_all(session, payload["project_id"], payload["event"])
    return len(taken)


def _deliver_to_all(session: Session, project_id: str, event: dict[str, Any]) -> None:
    endpoints = session.scalars(
        select(WebhookEndpoint).where(
            WebhookEndpoint.project_id == project_id,
            WebhookEndpoint.deleted_at.is_(None),
            WebhookEndpoint.enabled,
        )
    ).all()
    message_id = new_id("wh_")
    for endpoint in endpoints:
        if event["type"] in endpoint.event_types:
            session.add(
                WebhookDelivery(
                    project_id=project_id,
                    endpoint_id=endpoint.id,
                    message_id=message_id,
                    event=event,
                    give_up_at=now() + TRIED_S,
                )
            )


def record(session: Session, claimed: Claimed, outcome: Outcome) -> str | None:
    """Store what came of an attempt; returns why the endpoint was turned off, if it was.

    Does nothing when somebody else holds the delivery by now, or its endpoint was deleted.
    """
    row = session.scalar(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.id == claimed.id,
            WebhookDelivery.status == "pending",
            WebhookDelivery.attempts == claimed.attempt,
        )
        .values(lease_expires_at=None, response_status=outcome.status, error=_short(outcome.error))
        .returning(WebhookDelivery)
    )
    if row is None:
        return None
    if outcome.error is None:
        row.status, row.finished_at = "delivered", now()
        _endpoint_works(session, claimed.endpoint_id)
        return None
    at: float = session.scalar(select(database_now())) or 0.0
    over = outcome.gone or at >= row.give_up_at
    if over:
        row.status, row.finished_at = "failed", now()
    else:
        row.next_attempt_at = _next_attempt(row, at, outcome.retry_after_s)
    return _endpoint_fails(session, row, outcome, over=over)


def wait_s(failed: int) -> float:
    """Return the seconds to wait after the `failed`-th failure in a row, jitter included."""
    base = WAITS_S[failed - 1] if failed <= len(WAITS_S) else LAST_WAIT_S
    return base * random.uniform(1 - JITTER, 1 + JITTER)


def _next_attempt(row: WebhookDelivery, at: float, retry_after_s: float) -> int:
    wait = max(wait_s(row.attempts - row.attempts_before), retry_after_s)
    # The last attempt is made when the time is over, not up to a wait before.
    return min(int(at + wait), row.give_up_at)


def _endpoint_works(session: Session, endpoint_id: str) -> None:
    session.execute(
        update(WebhookEndpoint)
        .where(WebhookEndpoint.id == endpoint_id, WebhookEndpoint.failing_since.is_not(None))
        .values(failing_since=None)
    )


def _endpoint_fails(
    session: Session, row: WebhookDelivery, outcome: Outcome, *, over: bool
) -> str | None:
    """Mark the endpoint as failing; turn it off when it took nothing in all the time."""
    endpoint = session.scalar(
        update(WebhookEndpoint)
        .where(WebhookEndpoint.id == row.endpoint_id)
        .values(failing_since=func.coalesce(WebhookEndpoint.failing_since, now()))
        .returning(WebhookEndpoint)
    )
    if endpoint is None or not endpoint.enabled or endpoint.failing_since is None:
        return None
    if outcome.gone:
        reason = "It answered 410: it wants no more messages."
    elif over and endpoint.failing_since <= row.give_up_at - TRIED_S + LEASE_S:
        reason = f"It took no message for {TRIED_S // 3600} hours. The last trouble: {row.error}"
    else:
        return None
    endpoint.enabled, endpoint.disabled_reason, endpoint.updated_at = False, reason, now()
    audit.record(
        session,
        "webhook_endpoint.disabled",
        project_id=endpoint.project_id,
        object_id=endpoint.id,
        data={"reason": reason},
    )
    return reason


def replay(session: Session, delivery: WebhookDelivery) -> None:
    """Try a delivery again from now on, for another 72 hours if it had ended.

    One that is being tried at this moment is left alone. The message keeps its id, by which a
    receiver knows what it has seen.
    """
    free = or_(
        WebhookDelivery.status != "pending",
        WebhookDelivery.lease_expires_at.is_(None),
        WebhookDelivery.lease_expires_at < database_now(),
    )
    session.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == delivery.id, free)
        .values(**_fresh_round())
    )
    session.refresh(delivery)


def replay_failed(session: Session, endpoint_id: str, *, since: int) -> int:
    """Try every failed delivery of an endpoint made since a unix time again; returns how many."""
    replayed = session.execute(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookDelivery.status == "failed",
            WebhookDelivery.created_at >= since,
        )
        .values(**_fresh_round())
        .returning(WebhookDelivery.id)
    ).all()
    return len(replayed)


def _fresh_round() -> dict[str, Any]:
    return {
        "status": "pending",
        "finished_at": None,
        "lease_expires_at": None,
        # Not a moment from now: Postgres rounds where SQLite cuts off.
        "next_attempt_at": cast(database_now() - 0.5, BigInteger),
        "attempts_before": WebhookDelivery.attempts,
        "give_up_at": now() + TRIED_S,
    }


def abandon(session: Session, endpoint_id: str) -> None:
    """End what is on its way to an endpoint that is being deleted."""
    session.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.endpoint_id == endpoint_id, WebhookDelivery.status == "pending")
        .values(status="failed", error="The endpoint was deleted.", finished_at=now())
    )


def trim_deliveries(session: Session, *, limit: int = 1000) -> int:
    """Delete up to `limit` deliveries that ended longer ago than `KEPT_S`; returns how many."""
    old = session.scalars(
        select(WebhookDelivery.id)
        .where(
            WebhookDelivery.status.in_(("delivered", "failed")),
            WebhookDelivery.finished_at < now() - KEPT_S,
        )
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if old:
        session.execute(delete(WebhookDelivery).where(WebhookDelivery.id.in_(old)))
    return len(old)


def _short(error: str | None) -> str | None:
    return None if error is None else error[:500]
