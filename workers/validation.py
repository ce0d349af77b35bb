"""Validate new jobs: take one, have it checked, and queue it or fail it with a reason."""

import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import exists, or_, select, update
from sqlalchemy.orm import Session

from core.clock import database_now
from core.errors import NO_SPACE, IllegalTransition, InvalidRequest, StorageError
from core.events import add_event
from core.methods import chosen
from core.models import DRY_RUN, Event, Job
from core.states import transition
from workers.checks import check_job
from workers.context import Context
from workers.supervisor.jobdir import DataGone

#: How long one validation may take before another worker tries, in seconds.
VALIDATION_TTL_S = 600.0


def validate_waiting(context: Context, *, owner: str) -> list[str]:
    """Validate every waiting job that no other worker is at; returns their ids.

    Raises:
        StorageError: the object store does not answer; the job waits for the next call.
        OSError: the disk is full; the job waits likewise.
    """
    done = []
    while (job := _take(context, owner)) is not None:
        try:
            validate_job(context, job)
        except StorageError as error:
            _give_back(context, job.id, f"Validation waits: {error.message}")
            raise
        except OSError as error:
            if error.errno in NO_SPACE:
                where = context.settings.data_dir
                reason = f"no space is left under {where}; free some, and it goes on by itself."
                _give_back(context, job.id, f"Validation waits: {reason}")
            raise
        done.append(job.id)
    return done


def validate_job(context: Context, job: Job) -> None:
    """Check one job and queue it with every ``auto`` resolved, or fail it with a reason."""
    with context.sessions.begin() as session:
        files = f"training file: {job.training_file}"
        if job.validation_file:
            files += f" and validation file: {job.validation_file}"
        _tell_once(session, job.id, f"Validating {files}")
    context.settings.data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=context.settings.data_dir, prefix="validate-") as folder:
        try:
            checked = check_job(context, job, Path(folder))
        except (DataGone, InvalidRequest) as refusal:
            return _fail(context, job, refusal)
    what = "dry run" if job.kind == DRY_RUN else "job"
    with context.sessions.begin() as session:
        for warning in checked.warnings:
            add_event(session, job.id, warning, level="warn")
        _move(
            session,
            job.id,
            "queued",
            message=f"Files validated, moving {what} to queued state",
            data=checked.reports,
            method=checked.method,
            hyperparameters=chosen(checked.method)["hyperparameters"],
            plan=checked.plan,
        )


def _fail(context: Context, job: Job, refusal: InvalidRequest | DataGone) -> None:
    error = {"code": refusal.code, "message": refusal.message, "param": refusal.param}
    with context.sessions.begin() as session:
        _move(session, job.id, "failed", error=error, data=getattr(refusal, "data", None))


def _move(session: Session, job_id: str, to: str, **details: Any) -> None:
    try:
        transition(session, job_id, to, only_if=Job.status == "validating_files", **details)
    except IllegalTransition:
        return  # cancelled meanwhile, or validated by a worker that was slower to start


def _take(context: Context, owner: str) -> Job | None:
    """Mark one waiting job as being validated, so that two workers do not read the same files."""
    free = (Job.status == "validating_files") & or_(
        Job.lease_expires_at.is_(None), Job.lease_expires_at < database_now()
    )
    with context.sessions.begin() as session:
        oldest = select(Job.id).where(free).order_by(Job.created_at, Job.seq).limit(1)
        while (job_id := session.scalar(oldest)) is not None:
            job: Job | None = session.scalar(
                update(Job)
                .where(Job.id == job_id, free)
                .values(lease_owner=owner, lease_expires_at=database_now() + VALIDATION_TTL_S)
                .returning(Job)
            )
            if job is not None:
                return job
    return None


def _give_back(context: Context, job_id: str, reason: str) -> None:
    with context.sessions.begin() as session:
        _tell_once(session, job_id, reason, level="warn")
        session.execute(
            update(Job)
            .where(Job.id == job_id, Job.status == "validating_files")
            .values(lease_owner=None, lease_expires_at=None)
        )


def _tell_once(session: Session, job_id: str, message: str, *, level: str = "info") -> None:
    """Add an event that another try at the same job does not repeat."""
    told = exists().where(Event.job_id == job_id, Event.message == message)
    if not session.scalar(select(told)):
        add_event(session, job_id, message, level=level, data={})
