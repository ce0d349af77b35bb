"""What must hold before a job is queued: its model, its files, its grader against their rows."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rft.dataset import FieldCheck, Kind, Report, examine, iter_rows

from core.dry_runs import resolve_plan
from core.errors import ConfigurationError
from core.methods import Method
from core.models import DRY_RUN, Job
from core.nearest import nearest
from core.registry import BaseModel
from core.resolve import resolve
from graders.paths import Path as Variable
from graders.spec import GraderSpec, check_rows, item_of, parse_grader, variables
from graders.spec import warnings as grader_warnings
from workers.context import Context
from workers.file_checks import (
    check_lengths,
    check_report,
    compare,
    name_of,
    report_on,
    unshown_tools,
    warnings_of,
)
from workers.model_files import check_base, check_targets
from workers.named_dry_run import first_look
from workers.refused import Refused
from workers.supervisor.jobdir import fetch_file

_GRADER = "method.reinforcement.grader"
_REFERENCE_FIELD = "method.reinforcement.warm_start.reference_field"
_KINDS: dict[str, Kind] = {
    "training_file": "reinforcement",
    "validation_file": "reinforcement",
    "warm_start_file": "warm_start",
}
_FORMAT_WARNING = (
    "response_format does not constrain what the model writes here: completions may break the "
    "schema, and the grader alone judges them; a json_schema grader rewards those that keep it."
)


@dataclass(frozen=True)
class Checked:
    """A job that can be queued: its resolved method and plan, and what its user should know.

    `reports` maps the name of each file to what the validator said, and "overlap" to what stands
    in both the training and the validation file.
    """

    method: dict[str, Any]
    plan: dict[str, Any]
    warnings: list[str]
    reports: dict[str, Any] = field(default_factory=dict)


def check_job(context: Context, job: Job, folder: Path) -> Checked:
    """Check a job, with its files brought to ``folder``, and resolve every ``auto``.

    Raises:
        InvalidRequest: the job cannot be trained; mostly ``Refused``, which has details.
        DataGone: a file was deleted.
        StorageError: the object store does not answer.
    """
    base = _base_model(context, job)
    check_base(base)
    block = job.method["reinforcement"]
    grader = parse_grader(block["grader"])
    context.judges.check(grader, param=_GRADER)
    _refuse_tool_calls(grader)
    warnings = [f"Grader: {warning}" for warning in grader_warnings(grader)]
    if block.get("response_format") is not None:
        warnings.append(_FORMAT_WARNING)
    files = _fetch(context, job, folder)
    reports = {name: report_on(context, *files[name], _KINDS[name]) for name in files}
    for param, report in reports.items():
        check_report(report, param, files[param][0], base)
        warnings += warnings_of(report, param) + unshown_tools(report, param, base)
    rows = {param: reports[param].rows if param in reports else 0 for param in _KINDS}
    for param in ("training_file", "validation_file"):
        if param in files:
            _check_grader(grader, files[param][1], param)
    reference_field = (block.get("warm_start") or {}).get("reference_field")
    if reference_field is not None:
        _check_reference_field(reference_field, files["training_file"][1])
    said: dict[str, Any] = {param: report.to_dict() for param, report in reports.items()}
    if "validation_file" in files:
        said["overlap"], found = compare(files["training_file"][1], files["validation_file"][1])
        warnings += found
    method = resolve(
        Method.model_validate(job.method),
        train_rows=rows["training_file"],
        validation_rows=rows["validation_file"],
        warm_rows=rows["training_file" if reference_field else "warm_start_file"],
        model=base,
    )
    hyperparameters = method["reinforcement"]["hyperparameters"]
    check_targets(base, hyperparameters, method="reinforcement")
    warnings += check_lengths(
        base,
        [(param, *file) for param, file in files.items()],
        room=hyperparameters["max_completion_tokens"],
        reference_field=reference_field,
    )
    if job.kind == DRY_RUN and job.plan is not None:
        group_size = hyperparameters["group_size"]
        plan = resolve_plan(job.plan, train_rows=rows["training_file"], group_size=group_size)
        return Checked(method, plan, warnings, said)
    look = first_look(context, job, method)
    return Checked(method, {"spread_check": look.spread_check}, warnings + look.warnings, said)


def _fetch(context: Context, job: Job, folder: Path) -> dict[str, tuple[str, Path]]:
    """Bring the job's files to the folder; returns the id and path of each."""
    files = {}
    for param in _KINDS:
        file_id = getattr(job, param)
        if file_id is not None:
            files[param] = (file_id, folder / f"{param}.jsonl")
            fetch_file(context, file_id, files[param][1], param=param)
    return files


def _base_model(context: Context, job: Job) -> BaseModel:
    try:
        return context.registry.require(job.model)
    except ConfigurationError as error:
        # Waiting for the operator would hold up every job behind this one.
        message = f"{error.message} Then create the job again."
        raise Refused(message, code="model_not_available", param="model") from error


def _refuse_tool_calls(grader: GraderSpec) -> None:
    read = sorted(str(path) for path in variables(grader) if _is_tool_call(path))
    if read:
        raise Refused(
            f"The grader reads {', '.join(read)}, but completions are not parsed for tool calls "
            "yet; grade sample.output_text or sample.output_json instead.",
            code="unsupported_tool_calls",
            param=_GRADER,
        )


def _is_tool_call(path: Variable) -> bool:
    if path.namespace != "sample":
        return False
    return path.steps[0] == "output_tools" or path.steps[2:4] == ("message", "tool_calls")


def _check_grader(grader: GraderSpec, path: Path, param: str) -> None:
    problems = check_rows(grader, iter_rows(path))
    if problems:
        raise Refused(
            f"The {name_of(param)} does not fit the grader: "
            + " ".join(problem.message for problem in problems),
            code="invalid_grader",
            param=_GRADER,
            data=_missing_fields(grader, path).to_dict(),
        )


def _missing_fields(grader: GraderSpec, path: Path) -> Report:
    """Where in the file fields are missing that the grader reads."""
    items = sorted((p for p in variables(grader) if p.namespace == "item"), key=str)
    return examine(path, [FieldCheck(item.steps for item in items)])


def _check_reference_field(field: str, path: Path) -> None:
    lacking, total = 0, 0
    known: set[str] = set()
    for total, row in enumerate(iter_rows(path), start=1):  # noqa: B007 (used after the loop)
        item = item_of(row)
        known |= item.keys()
        lacking += item.get(field) in (None, "")
    if lacking:
        close = None if field in known else nearest(field, known)
        hint = f"did you mean {close!r}?" if close else "add it, or give a file of demonstrations."
        raise Refused(
            f"The warm start learns from the field {field!r}, which {lacking} of {total} training "
            f"rows lack or leave empty; {hint}",
            code="invalid_warm_start",
            param=_REFERENCE_FIELD,
        )
