"""What must hold before a job is queued: its model, its files, its grader against their rows."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rft.dataset import Kind, Report, iter_rows, validate

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
from workers.named_dry_run import first_look
from workers.refused import Refused
from workers.supervisor.jobdir import fetch_file

#: Warnings of one file that become events; the rest is counted.
WARNINGS_SHOWN = 5

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
    """A job that can be queued: its resolved method and plan, and warnings for the user."""

    method: dict[str, Any]
    plan: dict[str, Any]
    warnings: list[str]


def check_job(context: Context, job: Job, folder: Path) -> Checked:
    """Check a job, with its files brought to ``folder``, and resolve every ``auto``.

    Raises:
        InvalidRequest: the job cannot be trained; mostly ``Refused``, which has details.
        DataGone: a file was deleted.
        StorageError: the object store does not answer.
    """
    base = _base_model(context, job)
    block = job.method["reinforcement"]
    grader = parse_grader(block["grader"])
    context.judges.check(grader, param=_GRADER)
    _refuse_tool_calls(grader)
    warnings = [f"Grader: {warning}" for warning in grader_warnings(grader)]
    if block.get("response_format") is not None:
        warnings.append(_FORMAT_WARNING)
    paths, rows = {}, dict.fromkeys(_KINDS, 0)
    for param, kind in _KINDS.items():
        file_id = getattr(job, param)
        if file_id is None:
            continue
        paths[param] = folder / f"{param}.jsonl"
        fetch_file(context, file_id, paths[param], param=param)
        report = validate(paths[param], kind=kind)
        _check_file(report, param, file_id, base)
        rows[param] = report.rows
        warnings += _warnings(report, param)
    for param in ("training_file", "validation_file"):
        if param in paths:
            _check_grader(grader, paths[param], param)
    reference_field = (block.get("warm_start") or {}).get("reference_field")
    if reference_field is not None:
        _check_reference_field(reference_field, paths["training_file"])
    if "validation_file" in paths:
        warnings += _overlap(paths["training_file"], paths["validation_file"])
    method = resolve(
        Method.model_validate(job.method),
        train_rows=rows["training_file"],
        validation_rows=rows["validation_file"],
        warm_rows=rows["training_file" if reference_field else "warm_start_file"],
        model=base,
    )
    if job.kind == DRY_RUN and job.plan is not None:
        group_size = method["reinforcement"]["hyperparameters"]["group_size"]
        train_rows = rows["training_file"]
        plan = resolve_plan(job.plan, train_rows=train_rows, group_size=group_size)
        return Checked(method, plan, warnings)
    look = first_look(context, job, method)
    return Checked(method, {"spread_check": look.spread_check}, warnings + look.warnings)


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


def _check_file(report: Report, param: str, file_id: str, base: BaseModel) -> None:
    if not report.ok:
        count = sum(report.error_counts.values())
        more = "" if count == 1 else f" ({count - 1} more problems are listed in the event.)"
        raise Refused(
            f"The {_name(param)} {file_id} cannot be used: {report.errors[0]}{more}",
            code=f"invalid_{param}",
            param=param,
            data=report.to_dict(),
        )
    if (line := report.needs.get("image")) is not None:
        raise Refused(
            f"The {_name(param)} {file_id} has an image in line {line}, but model {base.id} reads "
            "text only; leave out the rows with images.",
            code="unsupported_image_input",
            param=param,
        )


def _warnings(report: Report, param: str) -> list[str]:
    name = _name(param).capitalize()
    shown = [f"{name}: {warning}" for warning in report.warnings[:WARNINGS_SHOWN]]
    rest = sum(report.warning_counts.values()) - sum(
        warning.count for warning in report.warnings[:WARNINGS_SHOWN]
    )
    return [*shown, f"{name}: {rest} more warnings"] if rest else shown


def _check_grader(grader: GraderSpec, path: Path, param: str) -> None:
    problems = check_rows(grader, iter_rows(path))
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


def _name(param: str) -> str:
    return param.replace("_", " ")
