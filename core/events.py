"""Writing event rows: the history of a job that users read, in a list or as it happens."""

from collections.abc import Mapping
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
    lock_job(session, job_id)
    event = Event(
        job_id=job_id,
        message=storable(message),
        level=level,
        type=type,
        data=None if data is None else _storable(data),
        step=step,
        phase=phase,
    )
    session.add(event)
    return event


def lock_job(session: Session, job_id: str) -> None:
    """Lock a job's row until the transaction ends, as every update of it does.

    So events are committed in the order of their numbers: who has read up to one of them never has
    to look before it. A transaction that writes other rows of the job and then an event calls this
    first, or it would wait for a writer that has the job and waits for those rows. (SQLite has one
    writer at a time anyway.)
    """
    # FOR NO KEY UPDATE: rows that refer to the job are still inserted by others meanwhile.
    session.execute(select(Job.id).where(Job.id == job_id).with_for_update(key_share=True))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_storable(name): _storable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(each) for each in value]
    return value


def storable(text: str) -> str:
    """Replace what Postgres text cannot hold: NUL and lone surrogates, which models do write."""
    return (
        text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    )
