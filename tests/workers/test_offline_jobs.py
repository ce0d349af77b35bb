"""Supervised and preference jobs: what validation says of them, and the real trainer's results."""

import csv
import io
import json
from typing import Any

import pytest

from core.models import File
from tests.workers.lab import Lab
from workers.validation import validate_waiting

SMALL = {"batch_size": 4, "n_epochs": 2, "lora_rank": 0, "learning_rate": 0.01}


def conversations(count: int, first: int = 0) -> bytes:
    rows = [
        {"messages": [{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": "ab"}]}
        for n in range(first, first + count)
    ]
    return jsonl(rows)


def preferences(count: int, first: int = 0) -> bytes:
    rows = [
        {
            "input": {"messages": [{"role": "user", "content": f"{n}?"}]},
            "preferred_output": [{"role": "assistant", "content": "ab"}],
            "non_preferred_output": [{"role": "assistant", "content": "zz"}],
        }
        for n in range(first, first + count)
    ]
    return jsonl(rows)


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def new_job(lab: Lab, kind: str, content: Any, **hyperparameters: Any) -> str:
    method = {"type": kind, kind: {"hyperparameters": hyperparameters}}
    return lab.new_job(
        method,
        training_file=lab.file(content(8)),
        validation_file=lab.file(content(4, first=100)),
    )


@pytest.mark.parametrize(
    ("kind", "content", "epochs"), [("supervised", conversations, 3), ("dpo", preferences, 1)]
)
def test_validation_resolves_what_is_automatic(
    lab: Lab, kind: str, content: Any, epochs: int
) -> None:
    job_id = new_job(lab, kind, content)
    validate_waiting(lab.context, owner="lab")
    job = lab.job(job_id)
    assert job.status == "queued", job.error
    values = job.method[kind]["hyperparameters"]
    assert (values["batch_size"], values["n_epochs"], values["max_steps"]) == (8, epochs, epochs)
    assert job.hyperparameters == values


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [("supervised", preferences, "messages"), ("dpo", conversations, "input")],
)
def test_a_file_of_another_kind_is_refused(lab: Lab, kind: str, content: Any, said: str) -> None:
    job_id = new_job(lab, kind, content)
    validate_waiting(lab.context, owner="lab")
    job = lab.job(job_id)
    assert job.status == "failed" and job.error is not None
    assert job.error["code"] == "invalid_training_file"
    assert said in job.error["message"]


@pytest.mark.parametrize(
    ("template", "weight", "status"),
    [
        ("{{ messages }}", 1, "failed"),
        ("{{ messages }}", 0, "queued"),
        ("{{ tools }}{{ messages[0]['tool_calls'] }}", 1, "queued"),
    ],
)
def test_calls_that_the_chat_template_cannot_write_are_refused(
    lab: Lab, template: str, weight: int, status: str
) -> None:
    (lab.context.registry.require("base").path / "chat_template.jinja").write_text(template)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = {"role": "assistant", "tool_calls": [call], "weight": weight}
    row = {
        "messages": [
            {"role": "user", "content": "Call it."},
            calling,
            {"role": "tool", "tool_call_id": "c", "content": "ab"},
            {"role": "assistant", "content": "ab"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    content = conversations(4) + b"\n" + jsonl([row])
    method = {"type": "supervised", "supervised": {}}
    job_id = lab.new_job(method, training_file=lab.file(content), validation_file=None)
    validate_waiting(lab.context, owner="lab")
    job = lab.job(job_id)
    assert job.status == status, job.error
    if status == "failed":
        assert job.error is not None and "line 5" in job.error["message"]
        assert (job.error["code"], job.error["param"]) == (
            "unsupported_tool_calls",
            "training_file",
        )


def test_limits_without_a_validation_file_are_warned_of(lab: Lab) -> None:
    method = {"type": "supervised", "supervised": {"limits": {"plateau_window": 3}}}
    job_id = lab.new_job(method, training_file=lab.file(conversations(8)), validation_file=None)
    validate_waiting(lab.context, owner="lab")
    assert "plateau_window has no effect without a validation_file." in lab.messages(job_id)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "content"), [("supervised", conversations), ("dpo", preferences)])
def test_a_job_ends_with_its_model_metrics_and_checkpoints(
    real_lab: Lab, kind: str, content: Any
) -> None:
    job_id = new_job(real_lab, kind, content, **SMALL)
    validate_waiting(real_lab.context, owner="lab")
    real_lab.run()
    job = real_lab.job(job_id)
    assert job.status == "succeeded", (job.error, real_lab.messages(job_id))
    assert job.fine_tuned_model is not None and job.trained_tokens
    assert [(c.phase, c.step, c.is_final) for c in real_lab.checkpoints(job_id)] == [
        (kind, 2, False),
        ("export", 4, True),
    ]
    assert any(m.startswith("Before training: ") for m in real_lab.messages(job_id))
    said = [m for m in real_lab.messages(job_id) if m.startswith("Step ")]
    assert len(said) == 4 and said[0].startswith("Step 1/4: training loss=")
    assert "full validation loss=" in said[-1]
    with real_lab.context.sessions() as session:
        files = [session.get_one(File, name) for name in job.result_files]
    (metrics,) = [file for file in files if file.filename == "step_metrics.csv"]
    text = real_lab.context.store.get_bytes(metrics.object_key).decode()
    steps = list(csv.DictReader(io.StringIO(text)))
    assert [step["step"] for step in steps] == ["1", "2", "3", "4"]
    assert float(steps[3]["train_loss"]) < float(steps[0]["train_loss"])
    assert steps[1]["full_valid_loss"] and not steps[0]["full_valid_loss"]
