"""Check what a new job brings: its files, and its grader against their rows."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rft.dataset import Kind, Report, iter_rows, validate
from sqlalchemy import or_, select, update

from core.clock import database_now
from core.errors import ConfigurationError, IllegalTransition, InvalidRequest, StorageError
from core.events import add_event
from core.methods import Method
from core.models import Job
from core.nearest import nearest
from core.resolve import resolve
from core.states import transition
from graders.spec import check_rows, item_of, parse_grader
from workers.context import Context
from workers.supervisor.jobdir import DataGone, fetch_file

#: How long one validation may take before another worker tries, in seconds.
VALIDATION_TTL_S = 600.0
#: Warnings of one file that become events; the rest is counted.
WARNINGS_SHOWN = 5

_GRADER = "method.reinforcement.grader"
_REFERENCE_FIELD = "method.reinforcement.warm_start.reference_field"
_KINDS: dict[str, Kind] = {
    "training_file": "reinforcement",
    "validation_file": "reinforcement",
    "warm_start_file": "warm_start",
}


class Refused(InvalidRequest):
    """The job cannot be trained as it stands; ``data`` lists what is wrong."""

    def __init__(
        self, message: str, *, code: str, param: str, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.data = data


def validate_waiting(context: Context, *, owner: str) -> list[str]:
    """Validate every waiting job that no other worker is at; returns their ids.

    Raises:
        StorageError: the object store does not answer; the job waits for the next call.
    """
    done = []
    while (job := _take(context, owner)) is not None:
        try:
            validate_job(context, job)
        except (StorageError, ConfigurationError):
            _give_back(context, job.id)
            raise
        done.append(job.id)
    return done


def validate_job(context: Context, job: Job) -> None:
    """Check one job and queue it with every ``auto`` resolved, or fail it with a reason."""
    with context.sessions.begin() as session:
        files = f"training file: {job.training_file}"
        if job.validation_file:
            files += f" and validation file: {job.validation_file}"
        add_event(session, job.id, f"Validating {files}", data={})
    context.settings.data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=context.settings.data_dir, prefix="validate-") as folder:
        try:
            method, warnings = _check(context, job, Path(folder))
        except (Refused, DataGone, InvalidRequest) as refusal:
            return _fail(context, job, refusal)
    with context.sessions.begin() as session:
        for warning in warnings:
            add_event(session, job.id, warning, level="warn")
        _move(
            session,
            job.id,
            "queued",
            message="Files validated, moving job to queued state",
            method=method,
            hyperparameters=method["reinforcement"]["hyperparameters"],
        )


def _check(context: Context, job: Job, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The resolved method and warnings; raises Refused, DataGone or InvalidRequest."""
    paths, rows, warnings = {}, dict.fromkeys(_KINDS, 0), []
    for param, kind in _KINDS.items():
        file_id = getattr(job, param)
        if file_id is None:
            continue
        paths[param] = folder / f"{param}.jsonl"
        fetch_file(context, file_id, paths[param], param=param)
        report = validate(paths[param], kind=kind)
        if not report.ok:
            raise _file_refusal(report, param, file_id)
        rows[param] = report.rows
        warnings += _warnings(report, param)
    block = job.method["reinforcement"]
    for param in ("training_file", "validation_file"):
        if param in paths:
            _check_grader(block["grader"], paths[param], param)
    reference_field = (block.get("warm_start") or {}).get("reference_field")
    if reference_field is not None:
        _check_reference_field(reference_field, paths["training_file"])
    if "validation_file" in paths:
        warnings += _overlap(paths["training_file"], paths["validation_file"])
    base = context.registry.get(job.model)
    if base is None:
        raise ConfigurationError(
            f"The base model {job.model} is no longer listed in {context.settings.models_file}; "
            "add it."
        )
    method = resolve(
        Method.model_validate(job.method),
        train_rows=rows["training_file"],
        validation_rows=rows["validation_file"],
        warm_rows=rows["training_file" if reference_field else "warm_start_file"],
        model=base,
    )
    return method, warnings


def _file_refusal(report: Report, param: str, file_id: str) -> Refused:
    count = sum(report.error_counts.values())
    more = "" if count == 1 else f" ({count - 1} more problems are listed in the event.)"
    return Refused(
        f"The {_name(param)} {file_id} cannot be used: {report.errors[0]}{more}",
        code=f"invalid_{param}",
        param=param,
        data=report.to_dict(),
    )


def _warnings(report: Report, param: str) -> list[str]:
    name = _name(param).capitalize()
    shown = [f"{name}: {warning}" for warning in report.warnings[:WARNINGS_SHOWN]]
    rest = sum(report.warning_counts.values()) - sum(
        warning.count for warning in report.warnings[:WARNINGS_SHOWN]
    )
    return [*shown, f"{name}: {rest} more warnings"] if rest else shown


def _check_grader(grader: dict[str, Any], path: Path, param: str) -> None:
    problems = check_rows(parse_grader(grader), iter_rows(path))
    if problems:
        raise Refused(
            f"The {_name(param)} does not fit the grader: "
            + " ".join(problem.message for problem in problems),
            code="invalid_grader",
            param=_GRADER,
        )


def _check_reference_field(field: str, path: Path) -> None:
    lacking, total = 0, 0
    known: set[str] = set()
    for total, row in enumerate(iter_rows(path), start=1):  # noqa: B007 (used after the loop)
        item = item_of(row)
        known |= item.keys()
        lacking += field not in item
    if lacking:
        close = nearest(field, known)
        hint = f"did you mean {close!r}?" if close else "add it, or give a file of demonstrations."
        raise Refused(
            f"The warm start learns from the field {field!r}, which {lacking} of {total} training "
            f"rows lack; {hint}",
            code="invalid_warm_start",
            param=_REFERENCE_FIELD,
        )


def _overlap(training: Path, validation: Path) -> list[str]:
    seen = set(_fingerprints(training))
    shared = sum(row in seen for row in _fingerprints(validation))
    if not shared:
        return []
    return [
        f"Validation file: {shared} rows also stand in the training file; what is measured on them "
        "says nothing about new input"
    ]


def _fingerprints(path: Path) -> Iterator[bytes]:
    for row in iter_rows(path):
        messages = json.dumps(row["messages"], sort_keys=True)
        yield hashlib.sha256(messages.encode("utf-8", "surrogatepass")).digest()


def _fail(context: Context, job: Job, refusal: InvalidRequest | DataGone) -> None:
    error = {"code": refusal.code, "message": refusal.message, "param": refusal.param}
    with context.sessions.begin() as session:
        _move(session, job.id, "failed", error=error, data=getattr(refusal, "data", None))


def _move(session: Any, job_id: str, to: str, **details: Any) -> None:
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
        while (
            job_id := session.scalar(select(Job.id).where(free).order_by(Job.created_at).limit(1))
        ) is not None:
            job: Job | None = session.scalar(
                update(Job)
                .where(Job.id == job_id, free)
                .values(lease_owner=owner, lease_expires_at=database_now() + VALIDATION_TTL_S)
                .returning(Job)
            )
            if job is not None:
                return job
    return None


def _give_back(context: Context, job_id: str) -> None:
    with context.sessions.begin() as session:
        session.execute(
            update(Job)
            .where(Job.id == job_id, Job.status == "validating_files")
            .values(lease_owner=None, lease_expires_at=None)
        )


def _name(param: str) -> str:
    return param.replace("_", " ")
