"""Run graders through the API, and read its answers."""

from typing import Any

import httpx

RUN, VALIDATE = "/v1/fine_tuning/alpha/graders/run", "/v1/fine_tuning/alpha/graders/validate"
FLAGS = {
    "formula_parse_error",
    "sample_parse_error",
    "truncated_observation_error",
    "unresponsive_reward_error",
    "invalid_variable_error",
    "other_error",
    "python_grader_server_error",
    "python_grader_runtime_error",
    "model_grader_server_error",
    "model_grader_refusal_error",
    "model_grader_parse_error",
}
DETAILS = {
    "python_grader_server_error_type",
    "python_grader_runtime_error_details",
    "model_grader_server_error_details",
}


def run(http: httpx.Client, grader: dict[str, Any], sample: str, **more: Any) -> dict[str, Any]:
    response = http.post(RUN, json={"grader": grader, "model_sample": sample, **more})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def raised(answer: dict[str, Any]) -> set[str]:
    """The flags that are set."""
    errors = answer["metadata"]["errors"]
    assert set(errors) == FLAGS | DETAILS
    return {name for name in FLAGS if errors[name]}
