"""Adapters on a base in 4 bits, in an environment that has bitsandbytes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-qlora/bin/python"

pytestmark = pytest.mark.slow


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert PYTHON.exists(), f"{PYTHON} is not there; run `make qlora`."
    return subprocess.run(
        [str(PYTHON), "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def found(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program saw."""
    folder = tmp_path_factory.mktemp("nf4")
    done = _run("tests.trainer.nf4_program", str(tiny_model), str(folder))
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_the_adapter_learns_on_a_base_that_stays(found: dict[str, Any]) -> None:
    assert found["types"] == ["torch.uint8"]
    assert found["learned"] > 0.05
    assert not found["base_moved"]
    assert found["reference_moved"] < 1e-5


def test_the_sampler_gets_the_model_that_is_trained(found: dict[str, Any]) -> None:
    """Its plain weights hold what 4 bits made of the base, not the base."""
    assert found["sampler_from_policy"] < 1e-5
    assert found["quantized_from_plain"] > 1e-3


def test_a_resumed_adapter_is_bit_for_bit_the_same(found: dict[str, Any]) -> None:
    assert found["resumed_alike"]


def test_the_export_is_proved_on_the_base_in_4_bits(found: dict[str, Any]) -> None:
    """And shown to differ on the base that it is served on."""
    proof = found["proof"]
    assert proof["max_difference"] < proof["tolerance"]
    assert proof["mean_difference_to_base"] > 1e-2
    assert proof["mean_difference_unquantized"] > 1e-4


def test_a_whole_job(make_job: Callable[..., Path]) -> None:
    job_dir = make_job(
        adapter={"rank": 4, "quantization": "nf4"},
        dtype="bfloat16",
        warm_start=None,
        hyperparameters={"mask_truncated": False, "temperature": 0.8},
    )
    done = _run("trainer", str(job_dir))
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert reports[-1]["reason"] == "done", done.stderr[-2000:]
    final = [r for r in reports if r["type"] == "checkpoint"][-1]
    assert final["kind"] == "adapter" and "mean_difference_unquantized" in final["proof"]
    steps = [r["data"] for r in reports if r["type"] == "metrics" and r["phase"] == "rl"]
    gaps = [step["mismatch_mean"] for step in steps if step["mismatch_mean"] is not None]
    assert gaps and max(gaps) < 0.05
