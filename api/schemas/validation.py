"""What the validator says about a file."""

from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel
from rft.dataset import Report


class ValidationProblem(BaseModel):
    """A broken rule: where (line from 1, byte offset from 0, JSON pointer), what, and the mend."""

    rule: str
    line: int
    offset: int
    path: str
    message: str
    mend: str
    count: int


class FileValidation(BaseModel):
    """The report on a file, read as rows of `kind` by this `version` of the validator.

    `looks_like` is the kind that the first row is of by its looks.

    The first 100 errors are listed, and the first of every other rule; all are counted.
    """

    object: Literal["file.validation"] = "file.validation"
    file_id: str
    kind: str
    looks_like: str
    version: str
    ok: bool
    rows: int
    valid_rows: int
    errors: list[ValidationProblem]
    warnings: list[ValidationProblem]
    error_counts: dict[str, int]
    warning_counts: dict[str, int]
    needs: dict[str, int]

    @classmethod
    def of(cls, file_id: str, report: Report) -> "FileValidation":
        """Show a report."""
        return cls(
            file_id=file_id,
            kind=report.kind,
            looks_like=report.looks_like,
            version=report.version,
            ok=report.ok,
            rows=report.rows,
            valid_rows=report.valid_rows,
            errors=[ValidationProblem(**asdict(problem)) for problem in report.errors],
            warnings=[ValidationProblem(**asdict(problem)) for problem in report.warnings],
            error_counts=dict(report.error_counts),
            warning_counts=dict(report.warning_counts),
            needs=dict(report.needs),
        )
