"""The device check runs from start to end, on a machine without a device too."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu.shapes import SHAPES, Shape
from bench.machine import ROOT


@pytest.mark.slow
def test_the_script_measures_an_adapter_and_all_weights(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [ROOT / "bench" / "gpu.sh", "--shapes", "tiny", "--engine", "transformers"]
    subprocess.run(
        [*command, "--out", out],
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        check=True,
        timeout=240,
    )
    adapter, whole = json.loads(out.read_text())["runs"]
    tiny = SHAPES["tiny"]
    tokens = tiny.prompts * tiny.group_size * tiny.max_tokens
    for run in (adapter, whole):
        # Every completion ran to the cap: the work is what the shape says.
        sampled = run["sampled_tokens_per_s"] * run["phases_s"]["sampling"]
        assert sampled == pytest.approx(tokens)
        assert run["phases_s"]["updating"] > 0
        assert run["update_tflops"] > 0
    assert (adapter["name"], whole["name"]) == ("tiny LoRA", "tiny full")


@pytest.mark.parametrize(("name", "billions"), [("0.6B", 0.6), ("4B", 4.0)])
def test_shapes_have_the_sizes_of_their_names(name: str, billions: float) -> None:
    assert parameters(SHAPES[name]) == pytest.approx(billions * 1e9, rel=0.02)


def parameters(shape: Shape) -> int:
    """Weights of the linear layers and of the embedding, which the head shares."""
    attention = shape.hidden * shape.head * 2 * (shape.heads + shape.key_value_heads)
    layer = attention + 3 * shape.hidden * shape.feed_forward
    return shape.layers * layer + shape.vocabulary * shape.hidden
