"""Requests that carry an `Idempotency-Key`: who makes one first, and what it was answered."""

from sqlalchemy import Select, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.models import IdempotentRequest

#: How long an answer is remembered, in seconds.
KEPT_S = 24 * 3600
#: After so many seconds without an answer or `renew` a request is lost with its process.
LOST_S = 600


def claim(
    sessions: sessionmaker[Session], project_id: str, key: str
) -> tuple[str, IdempotentRequest | None]:
    """Take the key for a request; return the new row's id, or the row of who took it before.

    In transactions of its own: others must see the claim while the request is still running.
    """
    with sessions.begin() as session:
        _forget_stale(session, project_id, key)
    row = IdempotentRequest(project_id=project_id, key=key, fingerprint="")
    try:
        with sessions.begin() as session:
            session.add(row)
            session.flush()
            return row.id, None
    except IntegrityError:
        with sessions() as session:
            taken = session.scalar(_of(project_id, key))
    # It may have been given back in this moment; the caller then takes the key itself.
    return ("", taken) if taken is not None else claim(sessions, project_id, key)


def renew(sessions: sessionmaker[Session], row_id: str) -> None:
    """Note that a claimed request is still being made, so that it does not count as lost."""
    being_made = (IdempotentRequest.id == row_id) & IdempotentRequest.status.is_(None)
    with sessions.begin() as session:
        session.execute(update(IdempotentRequest).where(being_made).values(created_at=now()))


def finish(
    sessions: sessionmaker[Session],
    row_id: str,
    *,
    fingerprint: str,
    status: int,
    body: bytes | None,
) -> None:
    """Remember the answer to a claimed request; without `body` only that there was one."""
    values = {"fingerprint": fingerprint, "status": status, "body": body}
    with sessions.begin() as session:
        session.execute(
            update(IdempotentRequest).where(IdempotentRequest.id == row_id).values(values)
        )


def give_back(sessions: sessionmaker[Session], row_id: str) -> None:
    """Forget a claimed request that changed nothing: the key may be used again."""
    with sessions.begin() as session:
        session.execute(delete(IdempotentRequest).where(IdempotentRequest.id == row_id))


def trim(session: Session, *, limit: int = 10_000) -> None:
    """Delete up to `limit` answers that are older than `KEPT_S`."""
    old = (
        select(IdempotentRequest.id)
        .where(IdempotentRequest.created_at < now() - KEPT_S)
        .order_by(IdempotentRequest.created_at)
        .limit(limit)
    )
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.id.in_(old)))


def _forget_stale(session: Session, project_id: str, key: str) -> None:
    row = session.scalar(_of(project_id, key))
    if row is None:
        return
    kept_s = LOST_S if row.status is None else KEPT_S
    if row.created_at < now() - kept_s:
        session.execute(delete(IdempotentRequest).where(IdempotentRequest.id == row.id))


def _of(project_id: str, key: str) -> Select[IdempotentRequest]:
    return select(IdempotentRequest).where(
        IdempotentRequest.project_id == project_id, IdempotentRequest.key == key
    )
