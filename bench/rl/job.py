"""A job directory as the supervisor makes it, for a workload or for the warm start before it."""

import json
from pathlib import Path
from typing import Any

from bench.rl.workload import Workload
from core.methods import algorithms
from trainer.data import batch_for_step
from trainer.spec import Hyperparameters, TrainSpec

NO_LIMITS: dict[str, Any] = {
    "max_train_seconds": None,
    "seconds_before": 0.0,
    "max_tokens": None,
    "plateau_window": 0,
    "min_entropy": 0.0,
    "max_kl": 0.0,
    "max_mismatch": 0.2,
}
#: Steps that no benchmark reaches.
NEVER = 1_000_000


def write_job(workload: Workload, directory: Path, *, max_staleness: int) -> None:
    """Fill an empty directory with the workload as a job, whose steps take the rows in order."""
    (directory / "data").mkdir(parents=True)
    rows: list[Any] = [None] * len(workload.rows)
    places: list[Any] = list(range(len(rows)))
    for step in range(workload.steps):
        # The trainer shuffles: each row stands where its turn comes.
        turn = batch_for_step(places, step, workload.prompts, workload.seed)
        start = step * workload.prompts
        for place, row in zip(turn, workload.rows[start : start + workload.prompts], strict=True):
            rows[place] = row
    _write_rows(directory / "data" / "train.jsonl", rows)
    if workload.start != workload.base:
        (directory / "init").symlink_to(Path(workload.start))
    hyperparameters = {
        "batch_size": workload.prompts,
        "group_size": workload.group_size,
        "max_steps": workload.steps,
        "learning_rate": workload.learning_rate,
        "temperature": workload.temperature,
        "max_completion_tokens": workload.max_tokens,
        "mask_truncated": False,
        "max_staleness": max_staleness,
    }
    method = {"grader": workload.grader, "warm_start": None, "hyperparameters": hyperparameters}
    spec = make_spec(
        method,
        base=Path(workload.base),
        init=(directory / "init").exists(),
        lora_rank=workload.lora_rank,
        engine=workload.engine,
        seed=workload.seed,
    )
    (directory / "spec.json").write_text(spec.model_dump_json(indent=1))


def make_spec(
    method: dict[str, Any], *, base: Path, init: bool, lora_rank: int, engine: str, seed: int
) -> TrainSpec:
    """The orders of a job that is neither evaluated nor watched."""
    values: dict[str, Any] = {
        "algorithm": "grpo",
        "eval_interval": method["hyperparameters"]["max_steps"] + 1,
        "eval_samples": 0,
        "mask_truncated": True,
        **method["hyperparameters"],
    }
    algorithms.fill(values)
    known = {name: values[name] for name in Hyperparameters.model_fields}
    return bare_spec(
        {
            "type": "reinforcement",
            "monitor_grader": None,
            "dry_run": None,
            "spread_check": "off",
            "failure_share_limit": 1.0,
            **method,
            "hyperparameters": known,
        },
        base=base,
        init=init,
        lora_rank=lora_rank,
        engine=engine,
        seed=seed,
    )


def bare_spec(
    method: dict[str, Any], *, base: Path, init: bool, lora_rank: int, engine: str, seed: int
) -> TrainSpec:
    """The orders of a job of any method, without validation rows, limits and checkpoints."""
    config = json.loads((base / "config.json").read_text())
    return TrainSpec.model_validate(
        {
            "job_id": "ftjob-bench",
            "seed": seed,
            "model": {
                "id": base.name,
                "path": str(base),
                "context_tokens": config["max_position_embeddings"],
                "chat_template": None,
            },
            "init": "init" if init else None,
            "adapter": {
                "rank": lora_rank,
                "alpha": 2 * lora_rank or 1,
                "targets": "all-linear",
                "quantization": "none",
            },
            "data": {
                "train": "data/train.jsonl",
                "validation": None,
                "warm_start": "data/warm_start.jsonl" if method.get("warm_start") else None,
            },
            "method": method,
            "limits": NO_LIMITS,
            # Checkpoints are not part of a step.
            "checkpoint_interval": NEVER,
            "engine": engine,
            "dtype": "bfloat16",
            "threads": 0,
            "processes": 1,
            "sampler_memory_share": 0.3,
        }
    )


def _write_rows(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
