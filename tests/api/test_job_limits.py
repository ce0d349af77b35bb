"""Limits and the monitor of a new job: what cannot hold is refused."""

from typing import Any

import httpx
import openai
import pytest

from tests.api.examples import GRADER, error_of, job_body, reinforcement, upload


@pytest.mark.parametrize(
    ("block", "asked"),
    [
        ({"limits": {"plateau_window": 3}}, "limits.plateau_window"),
        ({"monitor_grader": {**GRADER, "name": "independent"}}, "monitor_grader"),
    ],
)
def test_what_looks_at_validation_rows_needs_some(
    client: openai.OpenAI, http: httpx.Client, block: dict[str, Any], asked: str
) -> None:
    body = job_body(upload(client).id, method=reinforcement(**block))
    error = error_of(http.post("/v1/fine_tuning/jobs", json=body), 400)
    assert (error["code"], error["param"]) == (
        "missing_validation_file",
        f"method.reinforcement.{asked}",
    )
    assert "add a 'validation_file'" in error["message"]
    other = upload(client, [{"messages": [{"role": "user", "content": "Other?"}]}]).id
    made = http.post("/v1/fine_tuning/jobs", json={**body, "validation_file": other})
    assert made.status_code == 200
