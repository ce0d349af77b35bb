"""What a project may use: limits of the server, changed per project, and what is used of them.

Requests are counted by the API in Redis; what is counted here stands in the database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import InvalidRequest, QuotaExceeded
from core.models import Checkpoint, File, Job, Project, Upload, UploadPart
from core.settings import Settings
from core.states import TERMINAL

#: The value that lifts a limit of the server for one project.
UNLIMITED = "unlimited"
#: The largest number that a limit may be.
HIGHEST = 2**62
#: Marks a statement that changes nothing, for those who watch for changes.
LOCK_ONLY: Mapping[str, Any] = {"synchronize_session": False, "lock_only": True}


@dataclass(frozen=True)
class Limits:
    """What one project may use; None is no limit.

    `live_jobs` counts jobs and dry runs that have not ended, `gpu_seconds` is the time that all of
    them have run, since the project began, times the GPUs they ran on; `stored_bytes` counts
    files, the parts of unfinished uploads and trained models.
    """

    requests_per_minute: int | None = None
    requests_per_minute_per_key: int | None = None
    live_jobs: int | None = None
    gpu_seconds: int | None = None
    stored_bytes: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the server's own limits."""
        return cls(**{name: getattr(settings, f"limit_{name}") for name in LIMIT_NAMES})

    def changed(self, overrides: Mapping[str, Any] | None) -> Self:
        """Return these limits with a project's own in their place."""
        if not overrides:
            return self
        values = {name: None if value == UNLIMITED else value for name, value in overrides.items()}
        return replace(self, **values)


LIMIT_NAMES = tuple(field.name for field in fields(Limits))
NO_LIMITS = Limits()


@dataclass(frozen=True)
class Usage:
    """What a project uses now, in the units of `Limits`."""

    live_jobs: int
    gpu_seconds: int
    stored_bytes: int


def usage(session: Session, project_id: str) -> Usage:
    """Return what the project uses of the limits that the database counts."""
    return Usage(
        live_jobs=live_jobs(session, project_id),
        gpu_seconds=gpu_seconds(session, project_id),
        stored_bytes=stored_bytes(session, project_id),
    )


def live_jobs(session: Session, project_id: str) -> int:
    """Count the project's jobs and dry runs that have not ended."""
    query = select(func.count()).select_from(Job)
    alive = Job.status.not_in(TERMINAL)
    return session.scalar(query.where(Job.project_id == project_id, alive)) or 0


def gpu_seconds(session: Session, project_id: str) -> int:
    """Add up how long the project's jobs have run; each runs on one GPU."""
    running = case((Job.running_since.is_not(None), now() - Job.running_since), else_=0)
    query = select(func.sum(Job.gpu_seconds + running)).where(Job.project_id == project_id)
    return int(session.scalar(query) or 0)


def stored_bytes(session: Session, project_id: str) -> int:
    """Add up the project's files, the parts of its unfinished uploads, and its models."""
    files = select(func.sum(File.bytes)).where(
        File.project_id == project_id, File.deleted_at.is_(None)
    )
    parts = (
        select(func.sum(UploadPart.bytes))
        .join(Upload, UploadPart.upload_id == Upload.id)
        .where(Upload.project_id == project_id, Upload.status == "pending")
    )
    models = select(func.sum(Checkpoint.bytes)).where(
        Checkpoint.project_id == project_id, Checkpoint.deleted_at.is_(None)
    )
    return sum(int(session.scalar(query) or 0) for query in (files, parts, models))


def check_new_job(session: Session, project_id: str, limits: Limits) -> None:
    """Raise `QuotaExceeded` when the project may not have one more job now.

    From here to the end of the transaction no other one adds a job to the project or archives it.
    Raises `InvalidRequest` when one has archived it since the request was let in.
    """
    lock_project(session, project_id)
    if session.scalar(select(Project.archived_at).where(Project.id == project_id)) is not None:
        raise InvalidRequest(
            f"Project {project_id} is archived and starts no jobs; use a key of another project.",
            code="project_archived",
        )
    if limits.live_jobs is not None and live_jobs(session, project_id) >= limits.live_jobs:
        raise QuotaExceeded(
            f"The project may have {limits.live_jobs} unfinished jobs and dry runs, and has them;"
            " wait until one ends, cancel one, or have the operator raise its limit live_jobs.",
            kind="requests",
            code="rate_limit_exceeded",
        )
    check_gpu_seconds(session, project_id, limits)


def check_gpu_seconds(session: Session, project_id: str, limits: Limits) -> None:
    """Raise `QuotaExceeded` when the project has used up its GPU seconds."""
    if limits.gpu_seconds is None:
        return
    used = gpu_seconds(session, project_id)
    if used >= limits.gpu_seconds:
        raise QuotaExceeded(
            f"The project's jobs have run for {used:,} of its {limits.gpu_seconds:,} GPU seconds;"
            " have the operator raise its limit gpu_seconds."
        )


def check_stored_bytes(session: Session, project_id: str, limits: Limits, adding: int) -> None:
    """Raise `QuotaExceeded` when `adding` more bytes would be too many for the project.

    As `check_new_job`, it keeps others from adding until the transaction ends.
    """
    if limits.stored_bytes is None:
        return
    lock_project(session, project_id)
    refuse_bytes(stored_bytes(session, project_id), limits.stored_bytes, adding)


def refuse_bytes(used: int, limit: int, adding: int) -> None:
    """Raise `QuotaExceeded` when `used` and `adding` bytes together pass the limit."""
    if used + adding > limit:
        raise QuotaExceeded(
            f"The project stores {used:,} of its {limit:,} bytes, too many for {adding:,} more;"
            " delete files or models, or have the operator raise its limit stored_bytes."
        )


def lock_project(session: Session, project_id: str) -> None:
    """Keep other transactions from this point in this project until the caller's ends."""
    # A write takes the lock on both databases: SQLite has no SELECT … FOR UPDATE. Two requests
    # that count at the same time would else both find the last place free.
    unchanged = update(Project).where(Project.id == project_id).values(name=Project.name)
    session.execute(unchanged, execution_options=LOCK_ONLY)
