"""What must hold for the files of a job: each by itself, against the model, and side by side."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rft.dataset import Kind, OverlapReport, Report, find_overlap, iter_placed_rows, validate

from core import file_reports
from core.errors import ConfigurationError
from core.models import File
from core.registry import BaseModel
from workers.context import Context
from workers.model_files import chat_template
from workers.prompt_lengths import too_long
from workers.refused import Refused
from workers.serving.dialect import dialect_of

#: Warnings of one file that become events; the rest is counted.
WARNINGS_SHOWN = 5
#: Pairs of lines that a warning of overlap names.
PAIRS_SHOWN = 3


def report_on(context: Context, file_id: str, path: Path, kind: Kind) -> Report:
    """The report on a file that lies at ``path``; it is read only when no report is kept."""
    with context.sessions() as session:
        sha256 = session.get_one(File, file_id).sha256
        kept = file_reports.find(session, sha256, kind)
    if kept is not None:
        return kept
    report = validate(path, kind)
    with context.sessions.begin() as session:
        file_reports.keep(session, sha256, kind, report)
    return report


def check_report(report: Report, param: str, file_id: str, base: BaseModel) -> None:
    """Raise Refused when the file has errors, or needs what the model cannot do."""
    if not report.ok:
        raise refusal(report, param, file_id)
    if (line := report.needs.get("image")) is not None:
        raise Refused(
            f"The {name_of(param)} {file_id} has an image in line {line}, but model {base.id} "
            "reads text only; leave out the rows with images.",
            code="unsupported_image_input",
            param=param,
        )


def check_calls(path: Path, report: Report, param: str, file_id: str, base: BaseModel) -> None:
    """Raise Refused when a file has calls to learn that the model's chat template cannot write."""
    if report.kind != "supervised" or "tools" not in report.needs:
        return
    if dialect_of(base).knows_tools or "tool_calls" in chat_template(base):
        return
    for line, _, row in iter_placed_rows(path):
        if any(m.get("tool_calls") and m.get("weight") != 0 for m in row["messages"]):
            raise Refused(
                f"The {name_of(param)} {file_id} has tool calls to learn in line {line}, which the "
                f"chat template of model {base.id} cannot write; set the weight of such messages "
                "to 0, or choose a model whose template knows tools.",
                code="unsupported_tool_calls",
                param=param,
            )


def check_lengths(
    base: BaseModel,
    files: Iterable[tuple[str, Kind, str, Path]],
    *,
    room: int,
    reference_field: str | None,
) -> list[str]:
    """Raise Refused when rows do not fit into the model's context; returns warnings.

    Args:
        files: of each, what the job calls it, what it holds, its id and where it lies.
        room: tokens that a completion may need after a prompt.
        reference_field: what a warm start learns after the prompts of the training file.
    """
    for param, kind, file_id, path in files:
        answered = kind != "reinforcement"
        limits = [(base.context_tokens if answered else base.context_tokens - room, "")]
        if param == "training_file" and reference_field:
            limits.append((base.context_tokens, reference_field))
        for limit, target in limits:
            try:
                found = too_long(base, path, limit, kind=kind, target=target or None)
            except (ConfigurationError, subprocess.TimeoutExpired) as error:
                return [f"The length of prompts was not checked: {error}"]
            if found is not None:
                raise refusal(found, param, file_id)
    return []


def refusal(report: Report, param: str, file_id: str) -> Refused:
    """What refuses a job whose file has this report; the event carries the report."""
    count = sum(report.error_counts.values())
    rest = f"{count - 1} more problem{' is' if count == 2 else 's are'} listed in the event."
    more = "" if count == 1 else f" ({rest})"
    return Refused(
        f"The {name_of(param)} {file_id} cannot be used: {report.errors[0]}{more}",
        code=f"invalid_{param}",
        param=param,
        data=report.to_dict(),
    )


def warnings_of(report: Report, param: str) -> list[str]:
    """A sentence for each of the first warnings, and the number of the others."""
    name = name_of(param).capitalize()
    shown = [f"{name}: {warning}" for warning in report.warnings[:WARNINGS_SHOWN]]
    rest = sum(report.warning_counts.values()) - sum(
        warning.count for warning in report.warnings[:WARNINGS_SHOWN]
    )
    return [*shown, f"{name}: {rest} more warnings"] if rest else shown


def unshown_tools(report: Report, param: str, base: BaseModel) -> list[str]:
    """A warning when rows have tools, and the model's chat template drops them."""
    line = report.needs.get("tools")
    if line is None or dialect_of(base).knows_tools:
        return []
    return [
        f"{name_of(param).capitalize()}: line {line} has tools or calls, which the chat template "
        f"of model {base.id} leaves out: the model learns without them; describe them in a message"
    ]


def compare(training: Path, validation: Path) -> tuple[dict[str, Any], list[str]]:
    """The report on what stands in both files, and warnings about it."""
    found = find_overlap(iter_placed_rows(validation), iter_placed_rows(training))
    warnings = []
    if found.exact:
        rows = _rows(found.exact, "also stands", "also stand")
        warnings.append(
            f"Validation file: {rows} in the training file"
            f"{_examples(found, exact=True)}; what is measured on them says nothing about new input"
        )
    if found.near:
        rows = _rows(found.near, "is", "are")
        warnings.append(
            f"Validation file: {rows} nearly the same as rows of the training file"
            f"{_examples(found, exact=False)}; look whether they ask for something new"
        )
    return found.to_dict(), warnings


def _rows(count: int, one: str, several: str) -> str:
    return f"1 row {one}" if count == 1 else f"{count} rows {several}"


def _examples(found: OverlapReport, *, exact: bool) -> str:
    pairs = [pair for pair in found.pairs if (pair.similarity == 1) == exact][:PAIRS_SHOWN]
    said = [f"line {pair.validation_line} as line {pair.training_line}" for pair in pairs]
    return f" ({', '.join(said)})" if said else ""


def name_of(param: str) -> str:
    """What messages call a file that a job names in this parameter."""
    return param.replace("_", " ")
