"""What must hold before a job is queued: its model, its files, its graders against their rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rft.dataset import Kind, Report

from core.dry_runs import resolve_plan
from core.errors import ConfigurationError
from core.methods import Method, algorithms, chosen
from core.models import DRY_RUN, Job
from core.registry import BaseModel
from core.resolve import cut_short, resolve, unused_adapter
from workers.context import Context
from workers.file_checks import (
    check_calls,
    check_lengths,
    check_report,
    compare,
    report_on,
    unshown_tools,
    warnings_of,
)
from workers.grader_checks import (
    check_graders,
    check_reference_field,
    graders_of,
    warnings_about,
)
from workers.model_files import check_base, check_targets
from workers.named_dry_run import first_look
from workers.refused import Refused
from workers.supervisor.jobdir import fetch_file

#: What each file of a job holds, by the type of its method.
_KINDS: dict[str, dict[str, Kind]] = {
    "reinforcement": {
        "training_file": "reinforcement",
        "validation_file": "reinforcement",
        "warm_start_file": "warm_start",
    },
    "supervised": {"training_file": "supervised", "validation_file": "supervised"},
    "dpo": {"training_file": "preference", "validation_file": "preference"},
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


#: The id of each file of a job by its parameter, and where it lies.
_Files = dict[str, tuple[str, Path]]


def check_job(context: Context, job: Job, folder: Path) -> Checked:
    """Check a job, with its files brought to ``folder``, and resolve every ``auto``.

    Raises:
        InvalidRequest: the job cannot be trained; mostly ``Refused``, which has details.
        DataGone: a file was deleted.
        StorageError: the object store does not answer.
    """
    base = _base_model(context, job)
    check_base(base)
    kinds, block = _KINDS[job.method["type"]], chosen(job.method)
    graders = graders_of(context, block)
    warnings = warnings_about(graders)
    if block.get("response_format") is not None:
        warnings.append(_FORMAT_WARNING)
    files = _fetch(context, job, folder, kinds)
    reports = {name: report_on(context, *files[name], kinds[name]) for name in files}
    for param, report in reports.items():
        check_report(report, param, files[param][0], base)
        check_calls(files[param][1], report, param, files[param][0], base)
        warnings += warnings_of(report, param) + unshown_tools(report, param, base)
    check_graders(graders, files)
    reference_field = (block.get("warm_start") or {}).get("reference_field")
    if reference_field is not None:
        check_reference_field(reference_field, files["training_file"][1])
    said: dict[str, Any] = {param: report.to_dict() for param, report in reports.items()}
    if "validation_file" in files:
        said["overlap"], found = compare(files["training_file"][1], files["validation_file"][1])
        warnings += found
    method = _resolved(job, reports, base, reference_field)
    values = chosen(method)["hyperparameters"]
    check_targets(base, values, method=job.method["type"])
    warnings += check_lengths(
        base,
        [(param, kinds[param], *file) for param, file in files.items()],
        room=values.get("max_completion_tokens", 0),
        reference_field=reference_field,
    )
    warnings += cut_short(values, reports["training_file"].rows)
    warnings += unused_adapter(values, base) + _without_effect(method, files)
    if job.method["type"] != "reinforcement":
        return Checked(method, {}, warnings, said)
    if job.kind == DRY_RUN and job.plan is not None:
        rows = reports["training_file"].rows
        plan = resolve_plan(job.plan, train_rows=rows, group_size=values["group_size"])
        return Checked(method, plan, warnings, said)
    look = first_look(context, job, method)
    return Checked(method, {"spread_check": look.spread_check}, warnings + look.warnings, said)


def _resolved(
    job: Job, reports: Mapping[str, Report], base: BaseModel, reference_field: str | None
) -> dict[str, Any]:
    def rows(param: str) -> int:
        return reports[param].rows if param in reports else 0

    return resolve(
        Method.model_validate(job.method),
        train_rows=rows("training_file"),
        validation_rows=rows("validation_file"),
        warm_rows=rows("training_file" if reference_field else "warm_start_file"),
        model=base,
    )


def _without_effect(method: dict[str, Any], files: _Files) -> list[str]:
    """A sentence for each option that changes nothing in this job."""
    block = chosen(method)
    said = algorithms.unused(block["hyperparameters"]) if method["type"] == "reinforcement" else []
    if "validation_file" not in files:
        if block["limits"]["plateau_window"]:
            said.append("plateau_window has no effect without a validation_file.")
        if block.get("monitor_grader") is not None:
            said.append("monitor_grader has no effect without a validation_file.")
    return said


def _fetch(context: Context, job: Job, folder: Path, kinds: Mapping[str, Kind]) -> _Files:
    """Bring the job's files to the folder; returns the id and path of each."""
    files = {}
    for param in kinds:
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
