"""The job state machine: `transition` is the only code that changes `Job.status`.

validating_files → queued → running → succeeded | failed
running ⇄ pausing → paused → queued        running → queued (worker lost)
queued → paused                            any live state → cancelled
"""

from typing import Any

from sqlalchemy import ColumnElement, case, func, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import IllegalTransition, JobNotFound, StaleFence
from core.events import add_event
from core.models import DRY_RUN, TRAINING, Job
from core.queue import TRAIN, enqueue_wake, enqueue_webhook

#: For each status, the statuses it may be reached from.
ALLOWED_FROM: dict[str, frozenset[str]] = {
    "validating_files": frozenset(),
    "queued": frozenset({"validating_files", "running", "paused"}),
    "running": frozenset({"queued", "pausing"}),
    "pausing": frozenset({"running"}),
    "paused": frozenset({"queued", "running", "pausing"}),
    "succeeded": frozenset({"running", "pausing"}),
    "failed": frozenset({"validating_files", "running", "pausing"}),
    "cancelled": frozenset({"validating_files", "queued", "running", "pausing", "paused"}),
}
STATUSES = tuple(ALLOWED_FROM)
#: A worker holds the job: it has an owner, a lease and a valid fence.
HELD = frozenset({"running", "pausing"})
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})

_DRY_RUN_MESSAGES = {
    "queued": "Moving dry run to queued state",
    "running": "Dry run started",
    "succeeded": "The dry run has completed; its report is there",
    "failed": "Dry run failed",
    "cancelled": "Dry run cancelled",
}
_MESSAGES = {
    "queued": "Moving job to queued state",
    "running": "Fine-tuning job started",
    "pausing": "Pausing fine-tuning job after the current step",
    "paused": "Fine-tuning job paused",
    "succeeded": "The job has successfully completed",
    "failed": "Fine-tuning job failed",
    "cancelled": "Fine-tuning job cancelled",
}


def allowed_from(to: str) -> frozenset[str]:
    """Return the statuses from which `to` may be reached."""
    return ALLOWED_FROM[to]


def transition(
    session: Session,
    job_id: str,
    to: str,
    *,
    fence: int | None = None,
    only_if: ColumnElement[bool] | None = None,
    error: dict[str, Any] | None = None,
    message: str | None = None,
    data: dict[str, Any] | None = None,
    **columns: Any,
) -> Job:
    """Move a job to status `to` in the caller's transaction and return its row.

    One compare-and-swap: the row changes only when its status allows `to`, its fence equals `fence`
    (when given) and `only_if` holds, so of two racing callers exactly one wins. The event row, the
    wake-up of a queued job and the webhook of a finished one are part of the same transaction.
    `columns` are further `Job` columns to set. Leaving running/pausing ends the lease and raises
    the fence: later writes of the former holder are refused.

    Raises JobNotFound, StaleFence, or IllegalTransition (also when `only_if` does not hold).
    """
    conditions = [Job.id == job_id, Job.status.in_(allowed_from(to))]
    if fence is not None:
        conditions.append(Job.fence == fence)
    if only_if is not None:
        conditions.append(only_if)
    lease, times, ran = _lease_columns(to), _time_columns(to), _running_columns(to)
    values = {**lease, **times, **ran, "status": to, **columns}
    if error is not None:
        values["error"] = error
    job: Job | None = session.scalar(
        update(Job).where(*conditions).values(values).returning(Job),
        execution_options={"populate_existing": True},
    )
    if job is None:
        raise _refusal(session, job_id, to, fence)
    _announce(session, job, error, message, data)
    return job


def _lease_columns(to: str) -> dict[str, Any]:
    if to in HELD:
        # Queued to running is a new holder; running and pausing are the same one.
        return {"fence": case((Job.status.in_(HELD), Job.fence), else_=Job.fence + 1)}
    return {"fence": Job.fence + 1, "lease_owner": None, "lease_expires_at": None}


def _time_columns(to: str) -> dict[str, Any]:
    if to == "running":
        return {"started_at": func.coalesce(Job.started_at, now())}
    if to in ("succeeded", "failed"):  # OpenAI leaves finished_at empty on cancelled jobs
        return {"finished_at": now(), "estimated_finish": None}
    return {} if to in HELD else {"estimated_finish": None}


def _running_columns(to: str) -> dict[str, Any]:
    """Count the time a job is held, from taking to leaving it, on one GPU."""
    if to in HELD:
        return {"running_since": func.coalesce(Job.running_since, now())}
    ran = case((Job.running_since.is_not(None), now() - Job.running_since), else_=0)
    return {"gpu_seconds": Job.gpu_seconds + ran, "running_since": None}


def _announce(
    session: Session,
    job: Job,
    error: dict[str, Any] | None,
    message: str | None,
    data: dict[str, Any] | None,
) -> None:
    text = message or (error or {}).get("message") or _message(job)
    level = "error" if job.status == "failed" else "info"
    add_event(session, job.id, text, level=level, data=data)
    if job.status == "queued":
        enqueue_wake(session, TRAIN)
    # OpenAI's clients know no webhook of a dry run.
    if job.status in TERMINAL and job.kind == TRAINING:
        enqueue_webhook(session, job.project_id, f"fine_tuning.job.{job.status}", job.id)


def _message(job: Job) -> str:
    if job.kind == DRY_RUN and job.status in _DRY_RUN_MESSAGES:
        return _DRY_RUN_MESSAGES[job.status]
    if job.status == "running" and job.attempts > 1:
        return "Fine-tuning job resumed"
    return _MESSAGES[job.status]


def _refusal(session: Session, job_id: str, to: str, fence: int | None) -> Exception:
    row = session.execute(select(Job.status, Job.fence).where(Job.id == job_id)).one_or_none()
    if row is None:
        return JobNotFound(job_id)
    if fence is not None and row.fence != fence:
        return StaleFence(job_id, fence)
    return IllegalTransition(job_id, row.status, to)
