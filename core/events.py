"""Writing event rows: the history of a job that users read, in a list or as it happens."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.models import Event, Job


def add_event(
    session: Session,
    job_id: str,
    message: str,
    *,
    level: str = "info",
    type: str = "message",
    data: dict[str, Any] | None = None,
    step: int | None = None,
    phase: str | None = None,
) -> Event:
    """Add one event to the caller's transaction; `level` is info, warn or error."""
    # With the job's row locked, events are committed in the order of their numbers: who has read up
    # to one of them never has to look before it. (SQLite has one writer at a time anyway.)
    session.execute(select(Job.id).where(Job.id == job_id).with_for_update())
    event = Event(
        job_id=job_id,
        message=storable(message),
        level=level,
        type=type,
        data=data,
        step=step,
        phase=phase,
    )
    session.add(event)
    return event


def storable(text: str) -> str:
    """Replace what Postgres text cannot hold: NUL and lone surrogates, which models do write."""
    return (
        text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    )
