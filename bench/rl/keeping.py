"""The runs behind the figures: a table by phase, and the JSON that reports are made from."""

import json
import statistics
from collections.abc import Callable
from datetime import UTC, datetime
from operator import methodcaller
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine import ROOT, commit, machine
from bench.rl.runs import Run

RESULTS = ROOT / "bench" / "results" / "rl_runs.json"
PHASES = ("sampling", "grading", "updating", "sync", "other")


def summary(runs: list[Run]) -> dict[str, Any]:
    """The medians of one contender's runs, and what each run saw step by step.

    Seconds are those of a step, memory is in MiB.
    """

    def median(of: Callable[[Run], float]) -> float:
        return statistics.median(map(of, runs))

    return {
        "completions_per_s": median(lambda r: r.completions_per_s),
        "step_s": median(lambda r: r.seconds / len(r.steps)),
        "phases_s": {name: median(methodcaller("phase", name)) for name in PHASES},
        "peak_mib": max(sum(r.peaks_mib) for r in runs),
        "peaks_mib": max((r.peaks_mib for r in runs), key=sum),
        "completion_tokens": median(lambda r: r.mean("completion_tokens")),
        "truncated": median(lambda r: r.mean("truncated")),
        "trained": median(lambda r: r.mean("trained")),
        "steps_s": [[round(step.seconds, 3) for step in r.steps] for r in runs],
        "rewards": [[step.reward for step in r.steps] for r in runs],
        "resident_mib": [[round(step.memory["resident_mib"]) for step in r.steps] for r in runs],
        "notes": [r.notes for r in runs],
    }


def show(runs: dict[str, list[Run]], *, title: str) -> None:
    """Print a row for each contender."""
    table = Table(title=title)
    table.add_column("")
    for heading in ("completions/s", "step s", *PHASES, "peak MiB", "tokens", "cut", "trained"):
        table.add_column(heading, justify="right")
    for name, its in runs.items():
        row = summary(its)
        numbers = [row["completions_per_s"], row["step_s"], *row["phases_s"].values()]
        counts = [row["peak_mib"], row["completion_tokens"], row["truncated"], row["trained"]]
        cells = [*(f"{n:.2f}" for n in numbers), *(f"{n:.0f}" for n in counts)]
        table.add_row(name, *cells)
    Console(width=130).print(table)


def keep(
    part: str, name: str, runs: dict[str, list[Run]], failures: dict[str, str] | None = None
) -> None:
    """Put runs, and why some failed, in the place of earlier ones of the same part and name."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known.setdefault(part, {})[name] = {
        "machine": machine(),
        "commit": commit(),
        "at": datetime.now(UTC).isoformat(),
        "contenders": {contender: summary(its) for contender, its in runs.items()},
        "failures": failures or {},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
