"""A task's rows, and the weights that every run of it starts from: made once, kept in `.bench/`."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bench.environment import comparison_python
from bench.learning.tasks import START_BATCH, START_LEARNING_RATE, Task
from bench.learning.trainer_process import TrainerProcess
from bench.machine import ROOT
from bench.rl.job import make_spec
from bench.rl.workload import BASE_MODEL

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
    shutil.copy(rows_of(task) / "train.jsonl", job_dir / "data")
    shutil.copy(rows_of(task) / "warm_start.jsonl", job_dir / "data")
    (job_dir / "spec.json").write_text(_orders(task))

    def told(report: dict[str, Any]) -> None:
        if report["type"] == "checkpoint" and report["final"]:
            (job_dir / report["path"] / "model").rename(folder)

    TrainerProcess(job_dir).follow(told)
    shutil.rmtree(job_dir)
    return folder


def _folder(task: Task) -> Path:
    """Where a task's rows and start are kept: another one when what shapes them has changed."""
    shape = (task.generator, task.config, task.demonstrations, task.start_epochs)
    key = hashlib.sha256(repr((shape, START_BATCH, START_LEARNING_RATE)).encode()).hexdigest()[:12]
    return CACHE / f"{task.name}-{key}"


def _orders(task: Task) -> str:
    """A warm start, and the one step of reinforcement that a job ends with: it moves nothing."""
    warm_start = {
        "epochs": task.start_epochs,
        "learning_rate": START_LEARNING_RATE,
        "batch_size": START_BATCH,
        "reference_field": None,
    }
    nothing = {
        "batch_size": 1,
        "group_size": 2,
        "max_steps": 1,
        "learning_rate": 1e-30,
        "temperature": 1.0,
        "max_completion_tokens": 2,
    }
    method = {"grader": task.grader, "warm_start": warm_start, "hyperparameters": nothing}
    spec = make_spec(
        method, base=BASE_MODEL, init=False, lora_rank=0, engine="transformers", seed=SEED
    )
    return spec.model_dump_json(indent=1)
