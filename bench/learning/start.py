"""A task's rows, and the weights that every run of it starts from: made once, kept in `.bench/`."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bench.environment import comparison_python
from bench.learning.tasks import START_BATCH, START_LEARNING_RATE, Task
from bench.learning.trainer_process import TrainerProcess
from bench.machine import ROOT
from bench.rl.job import bare_spec
from bench.rl.workload import BASE_MODEL
from trainer.spec import TrainSpec

#: What need not be made again; git ignores it.
CACHE = ROOT / ".bench" / "learning"

#: Of the order of the demonstrations.
SEED = 1


def rows_of(task: Task) -> Path:
    """The folder of the task's rows."""
    folder = _folder(task) / "rows"
    if not folder.exists():
        unfinished = folder.with_name("unfinished-rows")
        command = [comparison_python(), "-m", "bench.learning.rows", task.name, str(unfinished)]
        subprocess.run(command, cwd=ROOT, check=True)
        unfinished.rename(folder)
    return folder


def start_of(task: Task) -> Path:
    """The weights after the task's supervised start, in Hugging Face layout.

    Raises:
        TrainerFailed: the start did not come to its end.
    """
    folder = _folder(task) / "start"
    if folder.exists():
        return folder
    job_dir = _folder(task) / "job"
    shutil.rmtree(job_dir, ignore_errors=True)
    (job_dir / "data").mkdir(parents=True)
    shutil.copy(rows_of(task) / "warm_start.jsonl", job_dir / "data" / "train.jsonl")
    (job_dir / "spec.json").write_text(job_spec(task).model_dump_json(indent=1))
    process = TrainerProcess(job_dir)

    def told(report: dict[str, Any]) -> None:
        if report["type"] != "checkpoint":
            return
        if report["final"]:
            (job_dir / report["path"] / "model").rename(folder)
        process.stored(report["path"])

    process.follow(told)
    shutil.rmtree(job_dir)
    return folder


def _folder(task: Task) -> Path:
    """Where a task's rows and start are kept: another one when what makes them has changed."""
    key = hashlib.sha256(json.dumps(task.start).encode()).hexdigest()[:12]
    return CACHE / f"{task.name}-{key}"


def job_spec(task: Task) -> TrainSpec:
    """A supervised job on the task's demonstrations."""
    updates = task.start_epochs * -(-task.demonstrations // START_BATCH)
    method = {
        "type": "supervised",
        "batch_size": START_BATCH,
        "max_steps": updates,
        "learning_rate": START_LEARNING_RATE,
        "eval_interval": updates,
        "eval_samples": 1,
    }
    return bare_spec(method, base=BASE_MODEL, init=False, lora_rank=0, engine="vllm", seed=SEED)
