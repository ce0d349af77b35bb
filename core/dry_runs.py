"""Dry runs: how many rows and samples they take, and whether one speaks for a job."""

from typing import Any

from core.errors import InvalidRequest
from core.methods import Range

#: Rows that a dry run samples when nothing is said, or those there are.
ROWS = 32
#: Most completions of one dry run, all rows together.
MAX_COMPLETIONS = 4096

ROW_RANGE = Range(int, 1, 1024)
SAMPLE_RANGE = Range(int, 2, 64)

#: Hyperparameters that decide what completions look like.
_SAMPLING = ("temperature", "max_completion_tokens")


def check_size(rows: int | str, samples_per_row: int | str) -> None:
    """Raise InvalidRequest when both numbers are given and make too many completions."""
    if isinstance(rows, int) and isinstance(samples_per_row, int):
        _refuse_too_many(rows, samples_per_row)


def resolve_plan(plan: dict[str, Any], *, train_rows: int, group_size: int) -> dict[str, int]:
    """Replace "auto" in a dry run's plan by values.

    Raises InvalidRequest when they make too many completions.
    """
    samples = plan["samples_per_row"]
    samples = min(group_size, int(SAMPLE_RANGE.high or 0)) if samples == "auto" else samples
    rows = plan["rows"]
    rows = min(ROWS, MAX_COMPLETIONS // samples) if rows == "auto" else rows
    rows = min(rows, train_rows)
    _refuse_too_many(rows, samples)
    return {"rows": rows, "samples_per_row": samples}


def differences(job_method: dict[str, Any], dry_run_method: dict[str, Any]) -> list[str]:
    """What two resolved methods differ in that decides how completions score, in words."""
    job, dry_run = job_method["reinforcement"], dry_run_method["reinforcement"]
    found = ["grader"] if job["grader"] != dry_run["grader"] else []
    if any(job["hyperparameters"][n] != dry_run["hyperparameters"][n] for n in _SAMPLING):
        found.append("sampling setting")
    return found


def _refuse_too_many(rows: int, samples_per_row: int) -> None:
    if rows * samples_per_row > MAX_COMPLETIONS:
        raise InvalidRequest(
            f"{rows} rows with {samples_per_row} samples each make"
            f" {rows * samples_per_row:,} completions; a dry run takes at most"
            f" {MAX_COMPLETIONS:,}, so choose fewer.",
            param="rows",
            code="invalid_value",
        )
