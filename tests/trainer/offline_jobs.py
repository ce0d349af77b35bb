"""Job directories of supervised and preference jobs around the tiny model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MakeJob = Callable[..., Path]

OFFLINE: dict[str, Any] = {
    "batch_size": 3,
    "max_steps": 8,
    "learning_rate": 3e-2,
    "eval_interval": 2,
    "eval_samples": 2,
}
#: What is said to each of eight rows; the first lines are learnt or preferred.
GOOD, BAD = "ab", "zz"


def supervised_job(make_job: MakeJob, *, name: str = "job", **changes: Any) -> Path:
    """Eight rows to imitate and four to measure."""
    method = {"type": "supervised", **OFFLINE, **changes.pop("method", {})}
    job_dir = make_job(name, method=method, **changes)
    rows = [conversation(f"row {i}", GOOD) for i in range(12)]
    write_rows(job_dir / "data/train.jsonl", rows[:8])
    write_rows(job_dir / "data/validation.jsonl", rows[8:])
    return job_dir


def preference_job(make_job: MakeJob, *, name: str = "job", **changes: Any) -> Path:
    """Eight rows to learn from and four to measure."""
    method = {
        "type": "dpo",
        "loss": "dpo",
        "beta": 0.5,
        **OFFLINE,
        "learning_rate": 3e-3,
        **changes.pop("method", {}),
    }
    job_dir = make_job(name, method=method, **changes)
    rows = [preference(f"row {i}", GOOD, BAD) for i in range(12)]
    write_rows(job_dir / "data/train.jsonl", rows[:8])
    write_rows(job_dir / "data/validation.jsonl", rows[8:])
    return job_dir


def conversation(*said: str) -> dict[str, Any]:
    """User and assistant in turns."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": s} for i, s in enumerate(said)]}


def preference(prompt: str, better: str, worse: str) -> dict[str, Any]:
    """One prompt and two answers."""
    return {
        "input": {"messages": [{"role": "user", "content": prompt}]},
        "preferred_output": [{"role": "assistant", "content": better}],
        "non_preferred_output": [{"role": "assistant", "content": worse}],
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def of(reports: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The reports of one type."""
    return [report for report in reports if report["type"] == kind]


#: Figures of the machine, which no two runs share.
MEASURED = ("timing", "throughput", "memory")


def curve(reports: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """All that the steps measured, but for seconds."""
    return {
        r["step"]: {k: v for k, v in r["data"].items() if k not in MEASURED}
        for r in of(reports, "metrics")
    }
