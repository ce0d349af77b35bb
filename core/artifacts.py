"""Weights for download: where they lie, and having an adapter folded into its base model.

`Checkpoint.merged_status` says how far that is: null (nobody asked), `queued`, `running`, `ready`
or `failed`. A worker that dies with it leaves `running` behind, which counts as `queued` again
after `MERGE_TTL_S`.
"""

from sqlalchemy import ColumnElement, and_, exists, or_, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.models import Checkpoint
from core.queue import TRAIN, enqueue_wake

#: Seconds after which a merge that did not end is taken for lost.
MERGE_TTL_S = 3600


def root_of(object_prefix: str) -> str:
    """Return where all objects of a checkpoint lie; its weights lie under `object_prefix`."""
    return object_prefix.removesuffix("/model")


def merged_prefix(object_prefix: str) -> str:
    """Return where the merged weights of a checkpoint lie, beside its own under `object_prefix`."""
    return f"{root_of(object_prefix)}/merged"


def request_merge(session: Session, checkpoint: Checkpoint) -> None:
    """Ask for merged weights, unless they are there or on their way; a failed merge is repeated."""
    changed = session.execute(
        update(Checkpoint)
        .where(
            Checkpoint.id == checkpoint.id,
            or_(Checkpoint.merged_status.is_(None), Checkpoint.merged_status == "failed"),
        )
        .values(merged_status="queued", merged_error=None, merged_at=now())
        .returning(Checkpoint.id)
    ).scalar()
    if changed is not None:
        enqueue_wake(session, TRAIN)
    session.refresh(checkpoint)


def merges_wait() -> ColumnElement[bool]:
    """Return the condition that some merge waits for a worker."""
    return exists(select(Checkpoint.id).where(_waiting()))


def claim_merge(session: Session) -> Checkpoint | None:
    """Take the merge that waits longest, or return None."""
    while True:
        oldest = select(Checkpoint.id).where(_waiting()).order_by(Checkpoint.merged_at).limit(1)
        checkpoint_id = session.scalar(oldest)
        if checkpoint_id is None:
            return None
        taken: Checkpoint | None = session.scalar(
            update(Checkpoint)
            .where(Checkpoint.id == checkpoint_id, _waiting())
            .values(merged_status="running", merged_at=now())
            .returning(Checkpoint)
        )
        if taken is not None:
            return taken


def end_merge(
    session: Session, checkpoint: Checkpoint, status: str, *, error: str | None = None
) -> bool:
    """Record how a claimed merge ended; False when it was taken for lost, or its model is gone."""
    changed = session.execute(
        update(Checkpoint)
        .where(
            Checkpoint.id == checkpoint.id,
            Checkpoint.merged_status == "running",
            Checkpoint.merged_at == checkpoint.merged_at,
            Checkpoint.deleted_at.is_(None),
        )
        .values(merged_status=status, merged_error=error, merged_at=now())
        .returning(Checkpoint.id)
    ).scalar()
    return changed is not None


def _waiting() -> ColumnElement[bool]:
    lost = and_(Checkpoint.merged_status == "running", Checkpoint.merged_at < now() - MERGE_TTL_S)
    return and_(Checkpoint.deleted_at.is_(None), or_(Checkpoint.merged_status == "queued", lost))
