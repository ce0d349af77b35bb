"""Errors of the graders library.

GraderError
├── SpecError (ValueError)          the grader JSON is refused
├── TemplateError (ValueError)      a template is refused
├── FormulaError (ValueError)       a formula is refused, or has no finite value
├── WireError (ValueError)          an outcome or a frame cannot be read
├── GraderProcessError (RuntimeError)   the grader process is gone, or answers nonsense
└── GradeError                      raised inside a grader to end a grade as a `Failure`
"""

from collections.abc import Sequence
from dataclasses import dataclass

#: Problems of a refused grader that its message tells.
_SHOWN_PROBLEMS = 20


class GraderError(Exception):
    """Root of every error that this library raises on purpose."""


@dataclass(frozen=True)
class SpecProblem:
    """One thing wrong with a grader: where (dotted path, may be empty), a sentence, its code."""

    param: str
    message: str
    code: str = "invalid_grader"

    def __str__(self) -> str:
        return f"{self.param}: {self.message}" if self.param else self.message


class SpecError(GraderError, ValueError):
    """The grader JSON is refused; `problems` lists everything found, the first one leads."""

    def __init__(self, problems: Sequence[SpecProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    @property
    def code(self) -> str:
        """`formula_parse_error`, `template_parse_error`, `invalid_schema` or `invalid_grader`."""
        return self.problems[0].code

    @property
    def param(self) -> str:
        """Dotted path of the first problem inside the grader, e.g. `graders.a.operation`."""
        return self.problems[0].param

    def __str__(self) -> str:
        shown = " ".join(str(problem) for problem in self.problems[:_SHOWN_PROBLEMS])
        more = len(self.problems) - _SHOWN_PROBLEMS
        return f"{shown} There are {more:,} more problems." if more > 0 else shown


class TemplateError(GraderError, ValueError):
    """A template is refused; the message names the column (from 1)."""


class FormulaError(GraderError, ValueError):
    """A formula is refused or has no finite value; `column` counts characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        self.message = message
        self.column = column
        super().__init__(message, column)

    def __str__(self) -> str:
        return f"{self.message} at column {self.column}"


class WireError(GraderError, ValueError):
    """An outcome or a frame does not have the documented form."""


class GraderProcessError(GraderError, RuntimeError):
    """The grader process did not start, ended, timed out, or broke the protocol."""


class GradeError(GraderError):
    """Ends one grade as `Failure(kind, detail)`; `kind` is a name in `outcome.KINDS`."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(kind, detail)
