"""Delete what projects do not want to keep any longer, and record each deletion."""

import logging
from collections.abc import Callable

from sqlalchemy import delete, select, true, update
from sqlalchemy.orm import Session

from core import audit, job_evals, retention, series
from core.artifacts import root_of
from core.clock import now
from core.errors import StorageError
from core.events import add_event, lock_job
from core.models import Checkpoint, Event, File, Metric, Project, Rollout, Sample
from core.retention import Item
from workers.context import Context

logger = logging.getLogger(__name__)

#: The most things deleted in one round; what is left waits for the next one.
MAX_ITEMS = 200

#: What the event of a job says was deleted.
_WORDS = {
    "checkpoints": "the weights of {name}",
    "samples": "its {count} samples and its evaluation reports",
    "metrics": "the metrics of its {count} steps",
}


def retain_once(context: Context, *, limit: int = MAX_ITEMS) -> list[Item]:
    """Delete up to `limit` things that are of age and that nothing needs; return them.

    Bytes go first: a round that stops in between finds the row again, and goes on.
    """
    done: list[Item] = []
    with context.sessions() as session:
        query = select(Project.id).where(Project.retention.is_not(None)).order_by(Project.id)
        projects = session.scalars(query).all()
    for project_id in projects:
        for item in _due(context, project_id, limit - len(done)):
            try:
                _delete(context, project_id, item)
            except StorageError as error:
                logger.warning("%s %s stays for now: %s", item.kind, item.id, error)
                return done
            done.append(item)
    return done


def _due(context: Context, project_id: str, limit: int) -> list[Item]:
    with context.sessions() as session:
        project = session.get_one(Project, project_id)
        free = [item for item in retention.items(session, project, until=now()) if not item.held_by]
    return sorted(free, key=lambda item: item.delete_at)[:limit]


def _delete(context: Context, project_id: str, item: Item) -> None:
    prefixes = _prefixes(context, item)
    for prefix in prefixes:
        context.store.delete_prefix(prefix)
    if item.kind == "files":
        with context.sessions() as session:
            key = session.get_one(File, item.id).object_key
        context.store.delete(key)
    with context.sessions.begin() as session:
        if item.job_id is not None:
            lock_job(session, item.job_id)
        days = retention.days_of(session.get_one(Project, project_id))[item.kind]
        _ROWS[item.kind](session, item, days or 0)
        if item.job_id is not None and item.kind in _WORDS:
            what = _WORDS[item.kind].format(name=item.name, count=item.count)
            message = f"Deleted {what}: the project keeps {item.kind} for {days} days"
            add_event(session, item.job_id, message)
        data = {"kind": item.kind, "count": item.count, "bytes": item.bytes, "days": days}
        audit.record(
            session, "retention.deleted", project_id=project_id, object_id=item.id, data=data
        )


def _prefixes(context: Context, item: Item) -> list[str]:
    """Where the objects of a thing lie that has more than one."""
    if item.kind == "checkpoints":
        with context.sessions() as session:
            return [root_of(session.get_one(Checkpoint, item.id).object_prefix)]
    if item.kind == "samples":
        return [f"jobs/{item.id}/rollouts", f"jobs/{item.id}/reports"]
    return []


def _forget_file(session: Session, item: Item, _days: int) -> None:
    session.execute(update(File).where(File.id == item.id).values(deleted_at=now()))


def _forget_checkpoint(session: Session, item: Item, _days: int) -> None:
    gone = {"deleted_at": now(), "has_state": False, "merged_status": None}
    session.execute(update(Checkpoint).where(Checkpoint.id == item.id).values(gone))


def _forget_samples(session: Session, item: Item, _days: int) -> None:
    session.execute(delete(Sample).where(Sample.job_id == item.id))
    session.execute(delete(Rollout).where(Rollout.job_id == item.id))
    # The runs of the job's eval hold the same completions.
    job_evals.forget_runs(session, item.id, true())


def _forget_events(session: Session, item: Item, days: int) -> None:
    # The same moment that the item was found by, or a later one: nothing younger goes with it.
    before = now() - days * retention.DAY_S
    session.execute(delete(Event).where(Event.job_id == item.id, Event.created_at <= before))


def _forget_metrics(session: Session, item: Item, _days: int) -> None:
    series.forget(session, item.id)
    session.execute(delete(Metric).where(Metric.job_id == item.id))


_ROWS: dict[str, Callable[[Session, Item, int], None]] = {
    "files": _forget_file,
    "checkpoints": _forget_checkpoint,
    "samples": _forget_samples,
    "events": _forget_events,
    "metrics": _forget_metrics,
}
