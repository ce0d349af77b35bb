"""Who tries which delivery next: claimed with a lease, a few of each endpoint and project."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, update
from sqlalchemy.orm import Session

from core.clock import database_now, now
from core.models import WebhookDelivery, WebhookEndpoint

#: Seconds that a worker holds a delivery; one that dies with it lets another try after them.
LEASE_S = 60.0
#: Messages to one endpoint, and to all endpoints of a project, at the same time.
PER_ENDPOINT, PER_PROJECT = 4, 16


@dataclass(frozen=True)
class Claimed:
    """A delivery that the caller now holds, with all that sending it takes."""

    id: str
    attempt: int
    endpoint_id: str
    url: str
    message_id: str
    event: dict[str, Any]
    secrets: Sequence[dict[str, Any]] = field(repr=False)


def claim_due(session: Session, *, limit: int = 32, lease_s: float = LEASE_S) -> list[Claimed]:
    """Take up to `limit` deliveries that are due.

    Of all that are under way, whoever holds them, an endpoint gets `PER_ENDPOINT` and a project
    `PER_PROJECT`: those that hang leave room for the others. (Two callers in the same moment do
    not see each other's, and may go a little beyond.)
    """
    load = _under_way(session)
    claimed: list[Claimed] = []
    for delivery_id, endpoint in _candidates(session, load, limit=8 * limit):
        if len(claimed) == limit:
            break
        if load[endpoint.id] >= PER_ENDPOINT or load[endpoint.project_id] >= PER_PROJECT:
            continue
        taken = _take(session, delivery_id, endpoint, lease_s)
        if taken is not None:
            load.update((endpoint.id, endpoint.project_id))
            claimed.append(taken)
    return claimed


def _candidates(
    session: Session, load: Counter[str], *, limit: int
) -> Sequence[Row[str, WebhookEndpoint]]:
    """The next deliveries of each endpoint; the first of every endpoint before any second one."""
    order = (WebhookDelivery.next_attempt_at, WebhookDelivery.seq)
    place = func.row_number().over(partition_by=WebhookDelivery.endpoint_id, order_by=order)
    placed = (
        select(WebhookDelivery.id, place.label("place"))
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(
            _due(),
            WebhookEndpoint.enabled,
            WebhookEndpoint.deleted_at.is_(None),
            WebhookEndpoint.id.not_in([each for each in load if load[each] >= PER_ENDPOINT]),
            WebhookEndpoint.project_id.not_in([each for each in load if load[each] >= PER_PROJECT]),
        )
        .subquery()
    )
    return session.execute(
        select(WebhookDelivery.id, WebhookEndpoint)
        .join(placed, placed.c.id == WebhookDelivery.id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(_due(), placed.c.place <= PER_ENDPOINT)
        .order_by(placed.c.place, *order)
        .limit(limit)
        .with_for_update(skip_locked=True, of=WebhookDelivery)
    ).all()


def _under_way(session: Session) -> Counter[str]:
    """How many deliveries are being tried, by endpoint and by project."""
    load: Counter[str] = Counter()
    held = select(WebhookDelivery.endpoint_id, WebhookDelivery.project_id).where(
        WebhookDelivery.status == "pending", WebhookDelivery.lease_expires_at >= database_now()
    )
    for ids in session.execute(held):
        load.update(ids)
    return load


def _due() -> ColumnElement[bool]:
    free = or_(
        WebhookDelivery.lease_expires_at.is_(None),
        WebhookDelivery.lease_expires_at < database_now(),
    )
    due = WebhookDelivery.next_attempt_at <= database_now()
    return (WebhookDelivery.status == "pending") & due & free


def _take(
    session: Session, delivery_id: str, endpoint: WebhookEndpoint, lease_s: float
) -> Claimed | None:
    row = session.scalar(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == delivery_id, _due())
        .values(
            attempts=WebhookDelivery.attempts + 1,
            lease_expires_at=database_now() + lease_s,
            last_attempt_at=now(),
        )
        .returning(WebhookDelivery)
    )
    if row is None:
        return None  # another worker took it since the SELECT
    return Claimed(
        id=row.id,
        attempt=row.attempts,
        endpoint_id=endpoint.id,
        url=endpoint.url,
        message_id=row.message_id,
        event=row.event,
        secrets=list(endpoint.secrets),
    )
