"""Validate the lab's jobs, and read what came of it."""

import copy
from typing import Any

from tests.workers.lab import METHOD, Lab
from workers.validation import validate_waiting


def method_with(**changes: object) -> dict[str, Any]:
    """The lab's method with other parts in its block."""
    method = copy.deepcopy(METHOD)
    method["reinforcement"] |= changes
    return method


def validate(lab: Lab) -> list[str]:
    """One light worker validates what waits."""
    return validate_waiting(lab.context, owner="lab")


def error_of(lab: Lab, job_id: str) -> dict[str, Any]:
    """The error with which validation fails a job, told once."""
    validate(lab)
    error = lab.job(job_id).error
    assert lab.job(job_id).status == "failed"
    assert lab.messages(job_id, level="error") == [error["message"]]
    return error
