"""Measure reinforcement steps on this machine's GPU: `bench/gpu.sh [--shapes 0.6B 4B]`.

Each shape is trained by a LoRA adapter and by all weights, each in a process of its own that ends
in time; what fails, such as a model that does not fit, leaves its reason in the table. Under eight
minutes in all.
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench.gpu.shapes import SHAPES, make_model, make_workload
from bench.machine import ROOT, commit, machine
from bench.rl.keeping import PHASES
from bench.rl.runs import OURS, Run, RunFailed, run
from bench.rl.speed import update_tflops

RESULTS = ROOT / "bench" / "results" / "gpu.json"
MODES = {"LoRA": 16, "full": 0}
STEPS = 3
#: Seconds for everything: what a run leaves of its share, those after it may use.
LIMIT_S = 460.0


def main() -> int:
    """Measure the shapes; 1 when any of them gave no figures."""
    parser = argparse.ArgumentParser(prog="bench/gpu.sh", description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["0.6B", "4B"])
    parser.add_argument("--engine", choices=("vllm", "transformers"), default="vllm")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    until = time.monotonic() + LIMIT_S
    for shape in args.shapes:
        with tempfile.TemporaryDirectory(prefix="rft-bench-") as folder:
            make_model(SHAPES[shape], Path(folder))
            for mode in MODES:
                share_s = (until - time.monotonic()) / (len(args.shapes) * len(MODES) - len(rows))
                rows.append(_measure(shape, mode, Path(folder), args.engine, share_s))
                _keep(rows, args.out)
    Console(width=130).print(_table(rows))
    return 1 if any("error" in row for row in rows) else 0


def _measure(shape: str, mode: str, model: Path, engine: str, limit_s: float) -> dict[str, Any]:
    sizes, name = SHAPES[shape], f"{shape} {mode}"
    workload = make_workload(name, sizes, model, lora_rank=MODES[mode], engine=engine, steps=STEPS)
    try:
        found = run(OURS, workload, limit_s=limit_s)
    except RunFailed as error:
        return {"name": name, "error": str(error)}
    return {"name": name, **_figures(found)}


def _figures(run: Run) -> dict[str, Any]:
    step = run.seconds / len(run.steps)
    return {
        "parameters": run.notes["parameters"],
        "step_s": step,
        "phases_s": {phase: run.phase(phase) for phase in PHASES},
        "completions_per_s": run.completions_per_s,
        "sampled_tokens_per_s": run.mean("completion_tokens") / max(run.phase("sampling"), 1e-9),
        "update_tflops": update_tflops(run),
        "peak_tflops": run.notes["peak_tflops"],
        "device_mib": run.notes["device_mib"],
        "host_mib": run.peaks_mib,
    }


def _keep(rows: list[dict[str, Any]], path: Path) -> None:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    where = {"device": device, "machine": machine(), "commit": commit()}
    content = {**where, "at": datetime.now(UTC).isoformat(), "runs": rows}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="One reinforcement step")
    table.add_column("")
    headings = ("step s", *PHASES, "tokens/s", "update TFLOP/s", "of peak", "device MiB")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        if "error" in row:
            table.add_row(row["name"], row["error"].splitlines()[0])
            continue
        seconds = (row["step_s"], *row["phases_s"].values())
        table.add_row(
            row["name"],
            *(f"{each:.2f}" for each in seconds),
            f"{row['sampled_tokens_per_s']:.0f}",
            f"{row['update_tflops']:.2f}",
            f"{row['update_tflops'] / row['peak_tflops']:.0%}",
            f"{row['device_mib']:.0f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
