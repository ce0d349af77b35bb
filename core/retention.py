"""What a project keeps for how long: which things come of age when, and what holds them.

A file's days count from its upload, an event's from when it was written, and all else that belongs
to a job from the job's end. A job that has not ended needs everything of its own, its files, and
the model it starts from, whoever's that is; an eval that runs needs its files and its model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, cast, exists, func, null, or_, select
from sqlalchemy.orm import Session

from core.eval_runs import LIVE
from core.models import Checkpoint, Eval, EvalRun, Event, File, Job, Metric, Project, Rollout
from core.states import TERMINAL

#: What has a time of its own, in the order in which it is shown.
KINDS = ("files", "checkpoints", "samples", "events", "metrics")
DAY_S = 24 * 3600


@dataclass(frozen=True)
class Item:
    """One thing that comes of age.

    `id` names a file, a checkpoint, or the job whose samples, events or metrics these are. `bytes`
    is null where it is not known. `held_by` is the job or eval run that needs it now.
    """

    kind: str
    id: str
    name: str | None
    count: int
    bytes: int | None
    delete_at: int
    held_by: str | None = None
    job_id: str | None = None


def days_of(project: Project) -> dict[str, int | None]:
    """Return after how many days each kind is deleted; None means never."""
    set_days = project.retention or {}
    return {kind: set_days.get(kind) for kind in KINDS}


def items(session: Session, project: Project, *, until: int) -> Iterator[Item]:
    """Yield everything of the project that comes of age up to the unix time `until`."""
    for kind, days in days_of(project).items():
        if days is not None:
            kept_s = days * DAY_S
            yield from _FINDERS[kind](session, project.id, kept_s, until - kept_s)


def _files(session: Session, project_id: str, kept_s: int, before: int) -> Iterator[Item]:
    held = _held_files(session, project_id)
    query = (
        select(File)
        .where(File.project_id == project_id, File.deleted_at.is_(None))
        .where(File.created_at <= before)
        .order_by(File.created_at, File.seq)
    )
    for file in session.scalars(query):
        yield Item(
            kind="files",
            id=file.id,
            name=file.filename,
            count=1,
            bytes=file.bytes,
            delete_at=file.created_at + kept_s,
            held_by=held.get(file.id),
        )


def _checkpoints(session: Session, project_id: str, kept_s: int, before: int) -> Iterator[Item]:
    held = _held_models(session)
    ended = _ended()
    query = (
        select(Checkpoint, ended)
        .join(Job, Job.id == Checkpoint.job_id)
        .where(Job.project_id == project_id, Job.status.in_(TERMINAL))
        .where(Checkpoint.deleted_at.is_(None), ended <= before)
        .order_by(ended, Checkpoint.id)
    )
    for checkpoint, ended_at in session.execute(query):
        yield Item(
            kind="checkpoints",
            id=checkpoint.id,
            name=checkpoint.name,
            count=1,
            bytes=checkpoint.bytes,
            delete_at=ended_at + kept_s,
            held_by=held.get(checkpoint.name),
            job_id=checkpoint.job_id,
        )


def _samples(session: Session, project_id: str, kept_s: int, before: int) -> Iterator[Item]:
    figures = func.coalesce(func.sum(Rollout.count), 0), func.sum(Rollout.bytes)
    # A job that failed early has evaluations and no rollouts.
    evaluated = exists().where(
        Eval.job_id == Job.id, EvalRun.eval_id == Eval.id, EvalRun.phase.is_not(None)
    )
    query = (
        _of_ended_jobs(project_id, before, *figures)
        .outerjoin(Rollout, Rollout.job_id == Job.id)
        .where(or_(Rollout.job_id.is_not(None), evaluated))
    )
    yield from _per_job("samples", session, query, kept_s)


def _metrics(session: Session, project_id: str, kept_s: int, before: int) -> Iterator[Item]:
    query = _of_ended_jobs(project_id, before, func.count(), cast(null(), BigInteger)).join(
        Metric, Metric.job_id == Job.id
    )
    yield from _per_job("metrics", session, query, kept_s)


def _events(session: Session, project_id: str, kept_s: int, before: int) -> Iterator[Item]:
    oldest = func.min(Event.created_at)
    query = (
        select(Job.id, func.count(), oldest)
        .join(Event, Event.job_id == Job.id)
        .where(Job.project_id == project_id, Job.status.in_(TERMINAL))
        .where(Event.created_at <= before)
        .group_by(Job.id)
        .order_by(oldest, Job.id)
    )
    for job_id, count, first in session.execute(query):
        yield Item("events", job_id, None, count, None, first + kept_s, job_id=job_id)


def _ended() -> ColumnElement[int]:
    """When a job ended; OpenAI leaves `finished_at` empty on cancelled jobs, whose events tell."""
    last_event = select(func.max(Event.created_at)).where(Event.job_id == Job.id)
    ended: ColumnElement[int] = func.coalesce(
        Job.finished_at, last_event.correlate(Job).scalar_subquery(), Job.created_at
    )
    return ended


def _of_ended_jobs(project_id: str, before: int, *figures: Any) -> Select[Any]:
    ended = _ended()
    return (
        select(Job.id, ended, *figures)
        .where(Job.project_id == project_id, Job.status.in_(TERMINAL), ended <= before)
        .group_by(Job.id)
        .order_by(ended, Job.id)
    )


def _per_job(kind: str, session: Session, query: Select[Any], kept_s: int) -> Iterator[Item]:
    for job_id, ended_at, count, size in session.execute(query):
        known = None if size is None else int(size)
        yield Item(kind, job_id, None, int(count), known, ended_at + kept_s, job_id=job_id)


def _held_files(session: Session, project_id: str) -> Mapping[str, str]:
    """Which file is needed by which job or eval run."""
    held: dict[str, str] = {}
    live = select(Job).where(Job.project_id == project_id, Job.status.not_in(TERMINAL))
    for job in session.scalars(live):
        own = (job.training_file, job.validation_file, job.warm_start_file, *job.result_files)
        held |= {file_id: job.id for file_id in own if file_id is not None}
    runs = select(EvalRun.id, EvalRun.data_source).where(
        EvalRun.project_id == project_id, EvalRun.status.in_(LIVE)
    )
    # One at a time: a data source may hold megabytes of items.
    for run_id, data_source in session.execute(runs, execution_options={"yield_per": 1}):
        if data_source["source"]["type"] == "file_id":
            held[data_source["source"]["id"]] = run_id
    return held


def _held_models(session: Session) -> Mapping[str, str]:
    """Which model is needed by which job or eval run, of any project: models can be shared."""
    jobs = select(Job.init_from, Job.id).where(
        Job.status.not_in(TERMINAL), Job.init_from.is_not(None)
    )
    runs = select(EvalRun.model, EvalRun.id).where(EvalRun.status.in_(LIVE))
    needed = [*session.execute(runs), *session.execute(jobs)]
    return {name: holder for name, holder in needed}  # noqa: C416 - rows are no plain pairs


_FINDERS = {
    "files": _files,
    "checkpoints": _checkpoints,
    "samples": _samples,
    "events": _events,
    "metrics": _metrics,
}
