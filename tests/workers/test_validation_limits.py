"""What the base models and the worker cannot do is said before a job is queued."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.workers.lab import GRADER, Lab, rows
from tests.workers.validating import error_of, method_with, validate

IMAGE_ROW = {
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}},
            ],
        }
    ],
    "answer": "a",
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


def line(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode()


def test_job_with_an_unlisted_model_fails_and_the_next_one_is_validated(lab: Lab) -> None:
    unlisted, good = lab.new_job(model="gone", created_at=1), lab.new_job(created_at=2)
    assert validate(lab) == [unlisted, good]
    error = lab.job(unlisted).error
    assert (lab.job(unlisted).status, error["code"]) == ("failed", "model_not_available")
    assert error["param"] == "model"
    assert "gone is not listed in" in error["message"]
    assert lab.job(good).status == "queued"


def test_model_without_its_files_fails_the_job(lab: Lab) -> None:
    base = lab.context.registry.require("base")
    shutil.rmtree(base.path)
    error = error_of(lab, lab.new_job())
    assert (error["code"], error["param"]) == ("model_not_available", "model")
    assert f"missing at {base.path}" in error["message"]


def test_a_model_that_cannot_be_trained_fails_the_job(lab: Lab) -> None:
    config = lab.context.registry.require("base").path / "config.json"
    config.write_text(json.dumps({"is_encoder_decoder": True}))
    error = error_of(lab, lab.new_job())
    assert (error["code"], error["param"]) == ("model_not_trainable", "model")


def test_a_target_that_the_model_lacks_is_refused_with_those_it_has(lab: Lab) -> None:
    folder = lab.context.registry.require("base").path
    save_file({"h.0.q_proj.weight": np.zeros((2, 2))}, folder / "model.safetensors")
    asked = {"lora_rank": 4, "lora_targets": ["k_proj"]}
    error = error_of(lab, lab.new_job(method_with(hyperparameters=asked)))
    assert error["code"] == "invalid_value"
    assert error["param"] == "method.reinforcement.hyperparameters.lora_targets"
    assert "no layer 'k_proj'" in error["message"] and "may name q_proj." in error["message"]


@pytest.mark.parametrize("param", ["training_file", "validation_file"])
def test_rows_with_images_are_refused_with_model_and_line(lab: Lab, param: str) -> None:
    file_id = lab.file(rows(4) + b"\n" + line(IMAGE_ROW) + b"\n" + line(IMAGE_ROW))
    error = error_of(lab, lab.new_job(**{param: file_id}))
    assert (error["code"], error["param"]) == ("unsupported_image_input", param)
    assert "line 5" in error["message"]
    assert "model base" in error["message"]


def test_demonstrations_with_images_are_refused(lab: Lab) -> None:
    answer = {"role": "assistant", "content": "A lamp."}
    file_id = lab.file(line({"messages": [*IMAGE_ROW["messages"], answer]}))
    job_id = lab.new_job(method_with(warm_start={"file": file_id}), warm_start_file=file_id)
    error = error_of(lab, job_id)
    assert (error["code"], error["param"]) == ("unsupported_image_input", "warm_start_file")


@pytest.mark.parametrize(
    "variable",
    [
        "sample.output_tools",
        "sample.output_tools[0].function.name",
        "sample.choices[0].message.tool_calls[0].function.name",
        'sample.choices[0]["message"]["tool_calls"]',
    ],
)
def test_grader_that_reads_tool_calls_is_refused(lab: Lab, variable: str) -> None:
    check = {**GRADER, "input": f"{{{{{variable}}}}}"}
    multi = {"type": "multi", "name": "m", "graders": {"a": check}, "calculate_output": "a"}
    error = error_of(lab, lab.new_job(method_with(grader=multi)))
    assert (error["code"], error["param"]) == (
        "unsupported_tool_calls",
        "method.reinforcement.grader",
    )
    assert variable.split("[")[0] in error["message"]


def test_grader_may_read_the_rest_of_a_choice(lab: Lab) -> None:
    for variable in ("sample.choices[0].message.content", "sample.choices[0].finish_reason"):
        job_id = lab.new_job(method_with(grader={**GRADER, "input": f"{{{{{variable}}}}}"}))
        validate(lab)
        assert lab.job(job_id).status == "queued"


def test_response_format_brings_a_warning_that_it_does_not_bind(lab: Lab) -> None:
    job_id = lab.new_job(method_with(response_format=FORMAT))
    validate(lab)
    (warning,) = lab.messages(job_id, level="warn")
    assert warning.startswith("response_format does not constrain what the model writes")
    assert "json_schema" in warning
    assert lab.job(job_id).status == "queued"


def test_warnings_of_the_grader_become_events(lab: Lab) -> None:
    check = {**GRADER, "input": "{{sample.output_json.answer}}"}
    multi = {
        "type": "multi",
        "name": "m",
        "graders": {"a": check, "b": GRADER},
        "calculate_output": "a / b",
    }
    job_id = lab.new_job(method_with(grader=multi))
    validate(lab)
    first, second = lab.messages(job_id, level="warn")
    assert first.startswith("Grader: same reads sample.output_json: ")
    assert second.startswith("Grader: calculate_output fails where a=0, b=0: ")
    assert lab.job(job_id).status == "queued"
