"""Run the demo with several seeds and keep what its held-out table says.

    python -m bench.demo --seeds 1 2 3

Each seed starts the whole service in a fresh folder. Results are merged by seed into
``bench/results/demo.json``, with the machine and the commit they were measured on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import ROOT, commit, machine

RESULTS = ROOT / "bench" / "results" / "demo.json"


def main() -> int:
    """Measure the seeds one after the other; stops at the first that fails."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    for seed in parser.parse_args().seeds:
        measured = run(seed)
        if measured is None:
            return 1
        keep({**measured, "machine": machine(), "commit": commit()})
    return 0


def run(seed: int) -> dict[str, Any] | None:
    """Run the demo once; ``None`` when it failed."""
    with tempfile.TemporaryDirectory(prefix="rft-bench-") as folder:
        summary = Path(folder) / "summary.json"
        command = [sys.executable, "-m", "examples.support.demo", "--seed", str(seed)]
        paths = ["--dir", f"{folder}/rft", "--json", str(summary)]
        if subprocess.run([*command, *paths], cwd=ROOT, check=False).returncode != 0:
            return None
        measured: dict[str, Any] = json.loads(summary.read_text())
        del measured["seconds"]  # seeds may be run beside other work
        return measured


def keep(measured: dict[str, Any]) -> None:
    """Put one seed's result in its place in the file."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    others = [entry for entry in known if entry["seed"] != measured["seed"]]
    entries = sorted([*others, measured], key=lambda entry: entry["seed"])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
