"""Run a package of benchmarks, print its figures as a table and keep them as JSON."""

import argparse
import importlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine import ROOT, commit, machine


def run(package: str, parts: Sequence[str], *, title: str) -> int:
    """Measure the parts named on the command line, or all; return 1 when a figure misses its limit.

    Each part is a module of `bench.<package>` whose `measure()` returns its figures; they are kept
    in `bench/results/<package>.json`.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{package}")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    chosen = parser.parse_args().parts or parts
    unknown = sorted(set(chosen) - set(parts))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(parts)}")
    console = Console()
    figures: list[dict[str, Any]] = []
    for part in chosen:
        with console.status(f"measuring {part}"):
            found = importlib.import_module(f"bench.{package}.{part}").measure()
        figures += [{"part": part, **figure.wire()} for figure in found]
    console.print(_table(figures, title))
    _keep(figures, package, parts)
    return 0 if all(figure["holds"] for figure in figures) else 1


def _table(figures: list[dict[str, Any]], title: str) -> Table:
    table = Table(title=title)
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


def _keep(figures: list[dict[str, Any]], package: str, parts: Sequence[str]) -> None:
    """Put the figures in the place of those of the same parts; the others stay."""
    results = ROOT / "bench" / "results" / f"{package}.json"
    known = json.loads(results.read_text()) if results.exists() else {"figures": []}
    measured = {figure["part"] for figure in figures}
    others = [figure for figure in known["figures"] if figure["part"] not in measured]
    where = {"machine": machine(), "commit": commit(), "at": datetime.now(UTC).isoformat()}
    entries = [*others, *({**figure, **where} for figure in figures)]
    entries.sort(key=lambda figure: list(parts).index(figure["part"]))
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"figures": entries}, indent=1, ensure_ascii=False) + "\n")
