"""What the validator says about a file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rft.dataset.rules import RULES

#: Errors, and warnings, that a report lists one by one; all of them are counted.
MAX_LISTED = 100


class Finding(NamedTuple):
    """A broken rule inside one line: the JSON pointer, a sentence, and bytes into the line."""

    rule: str
    path: str
    message: str
    offset: int = 0


@dataclass(frozen=True)
class Problem:
    """A broken rule: where (line from 1, byte offset from 0, JSON pointer), what, and the mend.

    A warning that repeats at the same JSON pointer is listed once, with its first place and a
    `count`.
    """

    rule: str
    line: int
    offset: int
    path: str
    message: str
    mend: str
    count: int = 1

    def __str__(self) -> str:
        place = f"line {self.line}" + (f" at {self.path}" if self.path else "")
        return f"{place}: {self.message} {self.mend}"


@dataclass(frozen=True)
class Report:
    """The verdict on a file.

    `rows` counts the lines that are not blank, `valid_rows` those without an error. `needs` maps
    what a model must be able to do ("image", "tools") to the first line that asks for it.
    """

    rows: int
    valid_rows: int
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    error_counts: Mapping[str, int]
    warning_counts: Mapping[str, int]
    needs: Mapping[str, int]

    @property
    def ok(self) -> bool:
        """Whether the file can be used: no errors."""
        return not self.error_counts

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "ok": self.ok,
            "rows": self.rows,
            "valid_rows": self.valid_rows,
            "errors": [asdict(problem) for problem in self.errors],
            "warnings": [asdict(problem) for problem in self.warnings],
            "error_counts": dict(self.error_counts),
            "warning_counts": dict(self.warning_counts),
            "needs": dict(self.needs),
        }


class Collector:
    """Gathers findings in bounded memory."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._warnings: dict[tuple[str, str], Problem] = {}
        self._error_counts: Counter[str] = Counter()
        self._warning_counts: Counter[str] = Counter()

    def add(self, finding: Finding, *, line: int, offset: int) -> bool:
        """Record a finding of the line at this byte offset; returns whether it is an error."""
        rule = RULES[finding.rule]
        problem = Problem(
            finding.rule, line, offset + finding.offset, finding.path, finding.message, rule.mend
        )
        if rule.severity == "warning":
            self._warn(problem)
            return False
        self._error_counts[finding.rule] += 1
        if len(self._errors) < MAX_LISTED:
            self._errors.append(problem)
        return True

    def report(self, *, rows: int, valid_rows: int, needs: Mapping[str, int]) -> Report:
        """Close the books."""
        return Report(
            rows=rows,
            valid_rows=valid_rows,
            errors=tuple(self._errors),
            warnings=tuple(self._warnings.values()),
            error_counts=dict(self._error_counts),
            warning_counts=dict(self._warning_counts),
            needs=dict(needs),
        )

    def _warn(self, problem: Problem) -> None:
        self._warning_counts[problem.rule] += 1
        key = (problem.rule, problem.path)
        known = self._warnings.get(key)
        if known is not None:
            self._warnings[key] = Problem(**{**asdict(known), "count": known.count + 1})
        elif len(self._warnings) < MAX_LISTED:
            self._warnings[key] = problem
