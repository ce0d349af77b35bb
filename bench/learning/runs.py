"""One run of one side: carried out once and kept as JSON, so that many can be spread over hours."""

import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bench.environment import comparison_python
from bench.learning import with_ours
from bench.learning.order import Order, Step
from bench.learning.start import CACHE, rows_of, start_of
from bench.learning.tasks import TASKS
from bench.machine import ROOT, commit, machine

RESULTS = ROOT / "bench" / "results" / "learning"

Side = Literal["ours", "trl"]
SIDES: tuple[Side, ...] = ("trl", "ours")


class RunFailed(RuntimeError):
    """A process of a run ended with an error; the message is the end of its log."""


@dataclass(frozen=True)
class Run:
    """A task, a trainer and a seed."""

    task: str
    side: Side
    seed: int

    @property
    def path(self) -> Path:
        """Where the result is kept."""
        return RESULTS / f"{self.task}-{self.side}-{self.seed}.json"

    @property
    def kept(self) -> bool:
        """Whether it has been carried out as the task is now."""
        if not self.path.exists():
            return False
        task, nowhere = TASKS[self.task], Path()
        order = Order.of(task, seed=self.seed, start=nowhere, train=nowhere, work=nowhere)
        kept = json.loads(self.path.read_text())
        return bool(kept["order"] == without_paths(order) and kept["start"] == task.start)

    @property
    def name(self) -> str:
        """What the run is called in messages."""
        return f"{self.task}, {self.side}, seed {self.seed}"


def planned(tasks: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """All runs, the sides in turn so that a change of the machine meets both."""
    return [Run(task, side, seed) for seed in seeds for task in tasks for side in SIDES]


def score_start(name: str) -> dict[str, Any]:
    """The scores of a task's start; makes it where it is not there.

    Raises:
        TrainerFailed, RunFailed: it could not be made or scored.
    """
    task = TASKS[name]
    rows, start = rows_of(task), start_of(task)
    work = _fresh(f"{name}-start")
    order = Order.of(task, seed=0, start=start, train=rows / "train.jsonl", work=work)
    dataclasses.replace(order, steps=0).write(work / "order.json")
    _module(sys.executable, "bench.learning.score", work, rows / "held_out.jsonl", "scores.json")
    (scores,) = json.loads((work / "scores.json").read_text())
    return dict(scores)


def carry_out(run: Run) -> list[dict[str, Any]]:
    """Train, score what was left, and keep the result; returns the scores by step.

    Raises:
        TrainerFailed, RunFailed: nothing is kept.
    """
    task = TASKS[run.task]
    rows, start = rows_of(task), start_of(task)
    began = time.perf_counter()
    work = _fresh(f"{run.task}-{run.side}-{run.seed}")
    order = Order.of(task, seed=run.seed, start=start, train=rows / "train.jsonl", work=work)
    order.write(work / "order.json")
    steps = with_ours.train(order) if run.side == "ours" else _train_with_trl(work)
    trained = time.perf_counter()
    _module(sys.executable, "bench.learning.score", work, rows / "held_out.jsonl", "scores.json")
    result = {
        **dataclasses.asdict(run),
        "order": without_paths(order),
        "start": task.start,
        "steps": [dataclasses.asdict(step) for step in steps],
        "scores": json.loads((work / "scores.json").read_text()),
        "seconds": {"training": trained - began, "all": time.perf_counter() - began},
        "machine": machine(),
        "commit": commit(),
        "at": datetime.now(UTC).isoformat(),
    }
    run.path.parent.mkdir(parents=True, exist_ok=True)
    run.path.write_text(json.dumps(result, ensure_ascii=False) + "\n")
    shutil.rmtree(work)
    scores: list[dict[str, Any]] = result["scores"]
    return scores


def _fresh(name: str) -> Path:
    work = CACHE / "work" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return work


def _train_with_trl(work: Path) -> list[Step]:
    _module(comparison_python(), "bench.learning.with_trl", work, "steps.json")
    return [Step(**step) for step in json.loads((work / "steps.json").read_text())]


def _module(python: str, module: str, work: Path, *files: Path | str) -> None:
    """Run a module on the order; files without a folder are those of the run."""
    log = work / f"{module.rsplit('.', 1)[-1]}.log"
    paths = [str(work / file) for file in ("order.json", *files)]
    with log.open("wb") as output:
        command = [python, "-m", module, *paths]
        code = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False)
    if code.returncode != 0:
        end = log.read_text(errors="replace")[-2000:]
        raise RunFailed(f"{module} ended with code {code.returncode}:\n{end}")


def without_paths(order: Order) -> dict[str, Any]:
    """What of an order says something on another machine."""
    paths = ("start", "train", "work")
    return {k: v for k, v in dataclasses.asdict(order).items() if k not in paths}
