"""Final models that are still to be asked through the serving service, as a queue.

`Checkpoint.serving_due_at` says when that is to be done next, null when there is nothing to do. A
claim moves it by a lease and counts an attempt; every write of the holder is refused once there was
another claim. What came of it is `proof["serving"]`, which the API shows.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, exists, select, update
from sqlalchemy.orm import Session

from core.clock import database_now
from core.errors import StaleFence
from core.models import Checkpoint, Job

WAITING, PROVED, FAILED = "waiting", "proved", "failed"

#: Tries after which a model that the serving service did not answer for is given up, and the
#: seconds between two of them.
MAX_ATTEMPTS, RETRY_S = 3, 600.0

#: What a model's proof says until the first try is over.
BEGINNING: dict[str, Any] = {
    "state": WAITING,
    "message": "The serving service is asked once the job has succeeded.",
}


@dataclass(frozen=True)
class HeldProof:
    """A final checkpoint that the caller is to prove; `attempt` counts from 1."""

    checkpoint_id: str
    attempt: int


def any_due(session: Session) -> bool:
    """Return whether a final model waits for a worker."""
    return bool(session.scalar(select(exists(_due()))))


def claim(session: Session, *, ttl_s: float) -> HeldProof | None:
    """Take the model that waits longest, for `ttl_s` seconds; None when none is due."""
    oldest = _due().order_by(Checkpoint.serving_due_at).limit(1)
    while (checkpoint_id := session.scalar(oldest)) is not None:
        attempt = session.scalar(
            update(Checkpoint)
            .where(
                Checkpoint.id == checkpoint_id,
                # Looked at again: another worker may have taken it since the SELECT.
                Checkpoint.serving_due_at <= database_now(),
            )
            .values(
                serving_due_at=database_now() + ttl_s,
                serving_attempts=Checkpoint.serving_attempts + 1,
            )
            .returning(Checkpoint.serving_attempts)
        )
        if attempt is not None:
            return HeldProof(checkpoint_id, attempt)
    return None


def extend(session: Session, held: HeldProof, ttl_s: float) -> None:
    """Hold the model for `ttl_s` seconds more; raises StaleFence when it was taken or deleted."""
    _write(session, held, serving_due_at=database_now() + ttl_s)


def give_back(session: Session, held: HeldProof) -> None:
    """Leave the model to the next worker, as if it had not been taken; raises StaleFence."""
    _write(
        session,
        held,
        serving_due_at=database_now(),
        serving_attempts=Checkpoint.serving_attempts - 1,
    )


def record(
    session: Session, held: HeldProof, serving: dict[str, Any], *, again: bool
) -> Checkpoint:
    """Write what came of a try, and when there is to be another; raises StaleFence."""
    due_at = database_now() + RETRY_S if again else None
    checkpoint = _write(session, held, serving_due_at=due_at)
    checkpoint.proof = {**(checkpoint.proof or {}), "serving": serving}
    return checkpoint


def _write(session: Session, held: HeldProof, **values: Any) -> Checkpoint:
    checkpoint: Checkpoint | None = session.scalar(
        update(Checkpoint)
        .where(
            Checkpoint.id == held.checkpoint_id,
            Checkpoint.serving_attempts == held.attempt,
            Checkpoint.serving_due_at.is_not(None),
            Checkpoint.deleted_at.is_(None),
        )
        .values(**values)
        .returning(Checkpoint),
        execution_options={"populate_existing": True},
    )
    if checkpoint is None:
        raise StaleFence(held.checkpoint_id, held.attempt)
    return checkpoint


def _due() -> Select[str]:
    return (
        select(Checkpoint.id)
        .join(Job, Job.id == Checkpoint.job_id)
        .where(
            Checkpoint.serving_due_at <= database_now(),
            Checkpoint.deleted_at.is_(None),
            Job.status == "succeeded",
        )
    )
