"""The weights that runs start from: the base model, or the same after a short warm start."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import ROOT
from bench.rl.job import make_spec
from bench.rl.workload import BASE_MODEL, DATA

CACHE = ROOT / ".bench" / "rl"

#: Enough that most groups have a spread of scores, and few have nothing left to learn.
WARM_START: dict[str, Any] = {
    "epochs": 8,
    "learning_rate": 1e-4,
    "batch_size": 16,
    "reference_field": None,
}


def warm_weights() -> Path:
    """The base model after our own warm start on the support demonstrations; made once."""
    spec = make_spec(
        {
            "grader": {
                "type": "string_check",
                "name": "any",
                "operation": "ne",
                "input": "{{sample.output_text}}",
                "reference": "",
            },
            "warm_start": WARM_START,
            # A job ends with reinforcement: one step that moves nothing.
            "hyperparameters": {
                "batch_size": 1,
                "group_size": 2,
                "max_steps": 1,
                "learning_rate": 1e-30,
                "temperature": 1.0,
                "max_completion_tokens": 8,
            },
        },
        base=BASE_MODEL,
        init=False,
        lora_rank=0,
        engine="transformers",
        seed=1,
    )
    orders = spec.model_dump_json(indent=1)
    demonstrations = (DATA / "warm_start.jsonl").read_bytes()
    key = hashlib.sha256(str(WARM_START).encode() + demonstrations).hexdigest()[:12]
    weights = CACHE / f"warm-{key}"
    if not weights.exists():
        _train(orders, weights)
    return weights


def start(name: str) -> str:
    """The path of the weights called `base` or `warm`."""
    return str(warm_weights() if name == "warm" else BASE_MODEL)


def _train(orders: str, weights: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rft-bench-") as folder:
        job = Path(folder) / "job"
        (job / "data").mkdir(parents=True)
        for name in ("train", "warm_start"):
            shutil.copy(DATA / f"{name}.jsonl", job / "data")
        (job / "spec.json").write_text(orders)
        command = [sys.executable, "-m", "trainer", str(job)]
        weights.parent.mkdir(parents=True, exist_ok=True)
        # What it reports on the way can be followed there.
        with weights.with_suffix(".log").open("wb") as log:
            subprocess.run(command, cwd=ROOT, check=True, stdout=log, stderr=log)
        shutil.move(job / "out" / "checkpoints" / "final" / "model", weights)
