"""What must hold for the graders of a job: their judges, and the rows that they read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rft.dataset import FieldCheck, Report, examine, iter_rows

from core.nearest import nearest
from graders.paths import Path as Variable
from graders.spec import GraderSpec, check_rows, item_of, parse_grader, variables
from graders.spec import warnings as grader_warnings
from workers.context import Context
from workers.file_checks import name_of
from workers.refused import Refused

_BLOCK = "method.reinforcement"
_REFERENCE_FIELD = f"{_BLOCK}.warm_start.reference_field"
#: The files whose rows a grader of the block reads.
_READS = {
    "grader": ("training_file", "validation_file"),
    "monitor_grader": ("validation_file",),
}


@dataclass(frozen=True)
class NamedGrader:
    """A grader of a job, and the field that it stands in."""

    name: str
    spec: GraderSpec

    @property
    def place(self) -> str:
        """The parameter that an error names."""
        return f"{_BLOCK}.{self.name}"


def graders_of(context: Context, block: Mapping[str, Any]) -> list[NamedGrader]:
    """The graders of a reinforcement block, each of which can be asked; raises InvalidRequest."""
    found = [NamedGrader(name, parse_grader(block[name])) for name in _READS if block.get(name)]
    for grader in found:
        context.judges.check(grader.spec, param=grader.place)
        _refuse_tool_calls(grader)
    return found


def warnings_about(graders: list[NamedGrader]) -> list[str]:
    """What the user should know of them."""
    return [
        f"{name_of(grader.name).capitalize()}: {warning}"
        for grader in graders
        for warning in grader_warnings(grader.spec)
    ]


def check_graders(graders: list[NamedGrader], files: Mapping[str, tuple[str, Path]]) -> None:
    """Raise Refused when a grader does not fit the rows of a file that it reads."""
    for grader in graders:
        for param in _READS[grader.name]:
            if param in files:
                _check_rows(grader, files[param][1], param)


def check_reference_field(field: str, path: Path) -> None:
    """Raise Refused when rows lack the field that a warm start learns from."""
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


def _refuse_tool_calls(grader: NamedGrader) -> None:
    read = sorted(str(path) for path in variables(grader.spec) if _is_tool_call(path))
    if read:
        raise Refused(
            f"The grader reads {', '.join(read)}, but completions are not parsed for tool calls "
            "yet; grade sample.output_text or sample.output_json instead.",
            code="unsupported_tool_calls",
            param=grader.place,
        )


def _is_tool_call(path: Variable) -> bool:
    if path.namespace != "sample":
        return False
    return path.steps[0] == "output_tools" or path.steps[2:4] == ("message", "tool_calls")


def _check_rows(grader: NamedGrader, path: Path, param: str) -> None:
    problems = check_rows(grader.spec, iter_rows(path))
    if problems:
        raise Refused(
            f"The {name_of(param)} does not fit the grader: "
            + " ".join(problem.message for problem in problems),
            code="invalid_grader",
            param=grader.place,
            data=_missing_fields(grader.spec, path).to_dict(),
        )


def _missing_fields(grader: GraderSpec, path: Path) -> Report:
    """Where in the file fields are missing that the grader reads."""
    items = sorted((p for p in variables(grader) if p.namespace == "item"), key=str)
    return examine(path, [FieldCheck(item.steps for item in items)])
