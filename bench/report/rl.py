"""The section on reinforcement steps: the figures, and the runs behind them by phase."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.report import tables
from bench.report.where import measured_on

PHASES = ("sampling", "grading", "updating", "sync", "other")


def section(results: Path) -> list[str]:
    """What is kept of it, part after part; nothing where nothing was measured."""
    figures, runs = results / "rl.json", results / "rl_runs.json"
    parts = []
    if figures.exists():
        parts.append(tables.figures(json.loads(figures.read_text())["figures"]))
    if runs.exists():
        parts += _runs(json.loads(runs.read_text()))
    return parts


def _runs(kept: dict[str, dict[str, Any]]) -> Iterator[str]:
    for part, workloads in kept.items():
        for name, found in workloads.items():
            yield f"### {part}: {name}"
            yield _phases(found["contenders"])
            yield measured_on([found])


def _phases(contenders: dict[str, dict[str, Any]]) -> str:
    """Medians of each contender's runs: seconds of a step by phase, and memory."""
    rows = [
        (
            name,
            tables.number(row["completions_per_s"]),
            f"{row['step_s']:.2f}",
            *(f"{row['phases_s'][phase]:.2f}" for phase in PHASES),
            f"{row['peak_mib']:,.0f}",
        )
        for name, row in contenders.items()
    ]
    phases = tuple(f"{phase}>" for phase in PHASES)
    return tables.table(("", "completions/s>", "step s>", *phases, "peak MiB>"), rows)
