"""Carry out an order with this trainer: a job directory, and `python -m trainer` on it."""

import shutil
from pathlib import Path
from typing import Any

from bench.learning.order import WEIGHTS, Order, Step
from bench.learning.trainer_process import TrainerProcess
from bench.rl.job import make_spec
from trainer.spec import TrainSpec


def train(order: Order) -> list[Step]:
    """Train; leaves the weights of the steps that are scored and returns every step.

    Raises:
        TrainerFailed: the job did not come to its end.
    """
    job_dir = Path(order.work) / "job"
    (job_dir / "data").mkdir(parents=True)
    shutil.copy(order.train, job_dir / "data" / "train.jsonl")
    (job_dir / "spec.json").write_text(job_spec(order).model_dump_json(indent=1))
    process, steps = TrainerProcess(job_dir), list[Step]()

    def told(report: dict[str, Any]) -> None:
        if report["type"] == "metrics":
            steps.append(_step(report["data"]))
        elif report["type"] == "checkpoint":
            if report["step"] > 0:
                _keep_weights(job_dir / report["path"], order.step_folder(report["step"]))
            process.stored(report["path"])

    process.follow(told)
    shutil.rmtree(job_dir)
    return steps


def job_spec(order: Order) -> TrainSpec:
    """The order as a job; what it does not say is what `auto` means."""
    hyperparameters = {
        "batch_size": order.batch_size,
        "group_size": order.group_size,
        "max_steps": order.steps,
        "learning_rate": order.learning_rate,
        "temperature": order.temperature,
        "max_completion_tokens": order.max_completion_tokens,
        # As TRL has it by default: what was cut is compared and learned from like the rest.
        "mask_truncated": False,
    }
    method = {"grader": order.grader, "warm_start": None, "hyperparameters": hyperparameters}
    spec = make_spec(
        method,
        base=Path(order.start),
        init=False,
        lora_rank=0,
        engine=order.engine,
        seed=order.seed,
    )
    return spec.model_copy(update={"checkpoint_interval": order.score_every})


def _step(data: dict[str, Any]) -> Step:
    seconds = data["timing"]["step"]
    return Step(
        seconds=seconds["full_iteration"] - seconds["eval"],
        reward=data["train_mean_reward"],
        completion_tokens=data["completion_tokens_mean"],
    )


def _keep_weights(checkpoint: Path, folder: Path) -> None:
    # A checkpoint and the final export of the same step hold the same weights.
    if not folder.exists():
        folder.mkdir()
        (checkpoint / "model" / WEIGHTS).rename(folder / WEIGHTS)
