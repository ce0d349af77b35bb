"""Make samples searchable whose step was recorded without their rows, before those were kept."""

import logging

from sqlalchemy import select, update

from core import samples
from core.errors import ObjectMissing, StorageError
from core.models import Rollout
from workers.context import Context

logger = logging.getLogger(__name__)

#: Steps indexed in one round; what is left waits for the next one.
MAX_STEPS = 200


def index_waiting(context: Context, *, limit: int = MAX_STEPS) -> int:
    """Write the rows of up to `limit` steps that wait for it; returns how many were looked at.

    A file that is gone or cannot be read is marked as lost: the API tells so.
    """
    with context.sessions() as session:
        waiting = session.scalars(
            select(Rollout).where(Rollout.index_state == "waiting").limit(limit)
        ).all()
    for rollout in waiting:
        try:
            rows = [*_rows(context, rollout)]
        except (samples.Unreadable, ObjectMissing) as error:
            logger.warning("%s cannot be indexed: %s", rollout.object_key, error)
            _record(context, rollout, None)
        except StorageError as error:
            logger.warning("Indexing waits: %s", error)
            return 0
        else:
            _record(context, rollout, rows)
    return len(waiting)


def _rows(context: Context, rollout: Rollout) -> list[dict[str, object]]:
    lines = samples.read_lines(context.store.iter(rollout.object_key))
    found = samples.rows_of(lines, job_id=rollout.job_id, step=rollout.step, split=rollout.split)
    return list(found)


def _record(context: Context, rollout: Rollout, rows: list[dict[str, object]] | None) -> None:
    with context.sessions.begin() as session:
        # A run that went back before this step has deleted the entry, or written another one.
        still = session.execute(
            update(Rollout)
            .where(
                Rollout.job_id == rollout.job_id,
                Rollout.step == rollout.step,
                Rollout.split == rollout.split,
                Rollout.object_key == rollout.object_key,
                Rollout.index_state == "waiting",
            )
            .values(index_state="lost" if rows is None else "indexed")
            .returning(Rollout.step)
        ).first()
        if still is not None and rows is not None:
            samples.replace(
                session, rows, job_id=rollout.job_id, step=rollout.step, split=rollout.split
            )
