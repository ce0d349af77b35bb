"""Measure the graders, print a table and keep it in `bench/results/graders.json`.

    python -m bench.graders [pure judges mixed python]

Ends with 1 when a figure misses what is asked of it.
"""

import argparse
import importlib
import json
import sys
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine import ROOT, commit, machine

RESULTS = ROOT / "bench" / "results" / "graders.json"
PARTS = ("pure", "judges", "mixed", "python")


def main() -> int:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.graders", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parts = parser.parse_args().parts or PARTS
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    console = Console()
    figures: list[dict[str, Any]] = []
    for part in parts:
        with console.status(f"measuring {part}"):
            found = importlib.import_module(f"bench.graders.{part}").measure()
        figures += [{"part": part, **figure.wire()} for figure in found]
    console.print(_table(figures))
    _keep(figures)
    return 0 if all(figure["holds"] for figure in figures) else 1


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(title="Graders")
    for heading in ("figure", "measured", "floor", "×", "asked", "holds"):
        table.add_column(
            heading, justify="right" if heading in ("measured", "floor", "×") else "left"
        )
    for f in figures:
        times = f["measured"] / f["floor"] if f["floor"] else float("inf")
        table.add_row(
            f"{f['name']} ({f['unit']})",
            f"{f['measured']:.3g}",
            f"{f['floor']:.3g}",
            f"{times:.2f}",
            f["limit"],
            "yes" if f["holds"] else "[red]no[/red]",
        )
    return table


def _keep(figures: list[dict[str, Any]]) -> None:
    """Put the figures in the place of those of the same parts; the others stay."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"figures": []}
    measured = {figure["part"] for figure in figures}
    others = [figure for figure in known["figures"] if figure["part"] not in measured]
    where = {"machine": machine(), "commit": commit(), "at": datetime.now(UTC).isoformat()}
    entries = [*others, *({**figure, **where} for figure in figures)]
    entries.sort(key=lambda figure: PARTS.index(figure["part"]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"figures": entries}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
