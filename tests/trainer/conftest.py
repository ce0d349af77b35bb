"""A tiny model, and job directories around it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fakes.tiny_model import make_tiny_model
from tests.trainer.adapters import adapter
from tests.trainer.hyperparameters import HYPERPARAMETERS, LIMITS
from trainer.policy import Policy

# Tests run side by side, and what they compute is tiny: more threads would wait for each other.
torch.set_num_threads(1)

#: Full marks for a completion that holds an "a", a third for one that holds a "b".
GRADER = {
    "type": "multi",
    "name": "letters",
    "graders": {
        "a": {
            "type": "string_check",
            "name": "a",
            "operation": "like",
            "input": "{{sample.output_text}}",
            "reference": "a",
        },
        "b": {
            "type": "string_check",
            "name": "b",
            "operation": "like",
            "input": "{{sample.output_text}}",
            "reference": "{{item.second}}",
        },
    },
    "calculate_output": "(2 * a + b) / 3",
}


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama on disk."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def tiny_policy(tiny_model: Path) -> Policy:
    """The tiny model with all weights trained, in float32."""
    return Policy.load(
        tiny_model, name="tiny", init=None, dtype=torch.float32, adapter=adapter(0), seed=0
    )


@pytest.fixture
def tiny_lora_policy(tiny_model: Path) -> Policy:
    """The tiny model with a rank-4 adapter, in float32."""
    return Policy.load(
        tiny_model, name="tiny", init=None, dtype=torch.float32, adapter=adapter(4), seed=0
    )


@pytest.fixture
def make_job(tmp_path: Path, tiny_model: Path) -> Callable[..., Path]:
    """Write a job directory; keyword arguments replace parts of its spec."""

    def write(name: str = "job", **changes: Any) -> Path:
        job_dir = tmp_path / name
        (job_dir / "data").mkdir(parents=True)
        rows = [
            {"messages": [{"role": "user", "content": f"row {i}"}], "second": "b"}
            for i in range(12)
        ]
        _write_jsonl(job_dir / "data/train.jsonl", rows[:8])
        _write_jsonl(job_dir / "data/validation.jsonl", rows[8:])
        shown = [
            {"messages": [*row["messages"], {"role": "assistant", "content": "xyab"[i]}]}
            for i, row in enumerate(rows[:4])
        ]
        _write_jsonl(job_dir / "data/warm_start.jsonl", shown)
        (job_dir / "spec.json").write_text(json.dumps(_spec(tiny_model, changes)))
        return job_dir

    return write


def _spec(model: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """A job's spec; a change replaces a field of the spec or of its method, or updates a block."""
    spec: dict[str, Any] = {
        "job_id": "ftjob-test",
        "seed": 7,
        "model": {
            "id": "tiny",
            "path": str(model),
            "context_tokens": 512,
            "chat_template": None,
        },
        "init": None,
        "adapter": {"rank": 0, "alpha": 8, "targets": "all-linear", "quantization": "none"},
        "data": {
            "train": "data/train.jsonl",
            "validation": "data/validation.jsonl",
            "warm_start": "data/warm_start.jsonl",
        },
        "method": {
            "type": "reinforcement",
            "grader": GRADER,
            "monitor_grader": None,
            "dry_run": None,
            "spread_check": "warn",
            "warm_start": {
                "epochs": 5,
                "learning_rate": 1e-2,
                "batch_size": 4,
                "reference_field": None,
            },
            "hyperparameters": {**HYPERPARAMETERS, **changes.pop("hyperparameters", {})},
            "failure_share_limit": 0.2,
        },
        "limits": {**LIMITS, **changes.pop("limits", {})},
        "checkpoint_interval": 2,
        "engine": "transformers",
        "dtype": "float32",
        "threads": 1,
        "processes": 1,
        "sampler_memory_share": 0.4,
    }
    spec["adapter"].update(changes.pop("adapter", {}))
    for name, value in changes.items():
        (spec if name in spec else spec["method"])[name] = value
    return spec


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
