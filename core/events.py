"""Writing event rows: the history of a job that users read."""

from typing import Any

from sqlalchemy.orm import Session

from core.models import Event


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
