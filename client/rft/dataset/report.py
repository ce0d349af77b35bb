"""What the validator says about a file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from rft.dataset.rules import RULES

#: Errors, and warnings, that a report lists one by one, beside the first error of every other rule;
#: all of them are counted.
MAX_LISTED = 100

#: Changes whenever a file may get another verdict than before.
VERSION = "4"


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
    """The verdict on a file, read as rows of `kind` by this `version` of the validator.

    `looks_like` is the kind that the first row is of by its looks. `rows` counts the lines that are
    not blank, `valid_rows` those without an error. `needs` maps what a model must be able to do
    ("image", "tools") to the first line that asks for it.
    """

    kind: str
    looks_like: str
    rows: int
    valid_rows: int
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    error_counts: Mapping[str, int]
    warning_counts: Mapping[str, int]
    needs: Mapping[str, int]
    version: str = VERSION

    @property
    def ok(self) -> bool:
        """Whether the file can be used: no errors."""
        return not self.error_counts

    @property
    def is_jsonl(self) -> bool:
        """Whether every line is a JSON object, whatever the objects hold."""
        return not any(RULES[rule].about in ("file", "line") for rule in self.error_counts)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "ok": self.ok,
            "kind": self.kind,
            "looks_like": self.looks_like,
            "version": self.version,
            "rows": self.rows,
            "valid_rows": self.valid_rows,
            "errors": [asdict(problem) for problem in self.errors],
            "warnings": [asdict(problem) for problem in self.warnings],
            "error_counts": dict(self.error_counts),
            "warning_counts": dict(self.warning_counts),
            "needs": dict(self.needs),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Report":
        """Read what `to_dict` wrote."""
        fields = {name: plain[name] for name in cls.__dataclass_fields__}
        for name in ("errors", "warnings"):
            fields[name] = tuple(Problem(**problem) for problem in plain[name])
        return cls(**fields)


class Collector:
    """Gathers findings in bounded memory."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._warnings: dict[tuple[str, str], Problem] = {}
        self._repeated: Counter[tuple[str, str]] = Counter()
        self._error_counts: Counter[str] = Counter()
        self._warning_counts: Counter[str] = Counter()

    def add(self, finding: Finding, *, line: int, offset: int, count: int = 1) -> bool:
        """Record a finding of the line at this byte offset; returns whether it is an error."""
        rule = finding.rule
        if RULES[rule].severity == "error":
            first = rule not in self._error_counts
            self._error_counts[rule] += count
            if first or len(self._errors) < MAX_LISTED:
                self._errors.append(_problem(finding, line, offset))
            return True
        self._warning_counts[rule] += count
        key = (rule, finding.path)
        if key in self._warnings:
            self._repeated[key] += count
        elif len(self._warnings) < MAX_LISTED:
            self._warnings[key] = _problem(finding, line, offset)
            self._repeated[key] = count
        return False

    def report(
        self, kind: str, *, looks_like: str, rows: int, valid_rows: int, needs: Mapping[str, int]
    ) -> Report:
        """Close the books."""
        warnings = self._warnings.items()
        return Report(
            kind=kind,
            looks_like=looks_like,
            rows=rows,
            valid_rows=valid_rows,
            errors=tuple(self._errors),
            warnings=tuple(replace(w, count=self._repeated[key]) for key, w in warnings),
            error_counts=dict(self._error_counts),
            warning_counts=dict(self._warning_counts),
            needs=dict(needs),
        )


def _problem(finding: Finding, line: int, offset: int) -> Problem:
    rule, path, message, into = finding
    return Problem(rule, line, offset + into, path, message, RULES[rule].mend)
