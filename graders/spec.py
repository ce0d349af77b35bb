"""Reading grader JSON, and checking a grader against the rows it will grade."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from graders import jsontext
from graders.base import Spec, given
from graders.errors import SpecError, SpecProblem
from graders.multi import Multi
from graders.paths import Absent, Path
from graders.problems import explain, spec_class
from graders.registry import SINGLE_GRADERS

GraderSpec: TypeAlias = Spec

#: Every grader type and its spec.
GRADERS: dict[str, type[Spec]] = {**SINGLE_GRADERS, "multi": Multi}

#: Largest grader JSON, in characters.
MAX_CHARS = 512_000

#: The keys of a row that are not part of `item`.
RESERVED_KEYS = frozenset({"messages", "tools"})


@dataclass(frozen=True)
class RowProblem:
    """A variable that rows lack: how many of how many, the first of them (from 1), the way out."""

    path: str
    missing: int
    rows: int
    first_row: int
    suggestion: str | None
    message: str


def parse_grader(raw: Any) -> GraderSpec:
    """Read grader JSON; raises `SpecError` that names every field in the way."""
    plain = _plain(raw)
    found = spec_class(plain, GRADERS)
    try:
        return found.model_validate(given(plain))
    except ValidationError as error:
        raise SpecError(explain(error, found)) from error


def _plain(raw: Any) -> Any:
    """The grader as bounded, strict JSON, so that nothing after this meets a surprise."""
    try:
        text = jsontext.dumps(raw)
        if len(text) > MAX_CHARS:
            message = f"A grader may hold {MAX_CHARS:,} characters of JSON, not {len(text):,}."
            raise SpecError([SpecProblem("", message)])
        return jsontext.parse(text)
    except jsontext.JsonTextError as error:
        raise SpecError([SpecProblem("", f"The grader is not usable JSON: {error}.")]) from error


def variables(spec: GraderSpec) -> frozenset[Path]:
    """The variables that the grader reads, its children's included."""
    return spec.paths()


def warnings(spec: GraderSpec) -> list[str]:
    """Sentences about what is allowed but likely a mistake, as in a formula that divides by 0."""
    return spec.warnings()


def item_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The `item` of a dataset row: everything but its conversation."""
    return {key: value for key, value in row.items() if key not in RESERVED_KEYS}


def check_rows(spec: GraderSpec, rows: Iterable[Mapping[str, Any]]) -> list[RowProblem]:
    """Find the `item` variables that some rows lack; reads the rows once, keeps none."""
    paths = sorted((p for p in variables(spec) if p.namespace == "item"), key=str)
    missing: dict[Path, int] = dict.fromkeys(paths, 0)
    first: dict[Path, tuple[int, Path | None]] = {}
    total = 0
    for total, row in enumerate(rows, start=1):
        item = item_of(row)
        for path in paths:
            try:
                path.find(item)
            except Absent as absent:
                missing[path] += 1
                first.setdefault(path, (total, absent.suggestion))
    return [_row_problem(path, missing[path], total, *first[path]) for path in first]


def _row_problem(
    path: Path, missing: int, rows: int, first_row: int, suggestion: Path | None
) -> RowProblem:
    mend = "add it to the rows or change the grader."
    hint = f"did you mean {suggestion}?" if suggestion else mend
    message = (
        f"The grader reads {path}, which {missing} of {rows} rows lack "
        f"(first in row {first_row}); {hint}"
    )
    return RowProblem(
        path=str(path),
        missing=missing,
        rows=rows,
        first_row=first_row,
        suggestion=str(suggestion) if suggestion else None,
        message=message,
    )
