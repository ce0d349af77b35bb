"""Markdown tables of benchmarks that keep figures (`bench.figures`), and of the demo."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.report.where import measured_on

#: Stages of the demo's job, as its table calls them.
STAGES = {"base": "base model", "warm_start": "after warm start", "final": "after RL"}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; headings that end with `>` are aligned to the right."""
    names = [heading.removesuffix(">") for heading in headings]
    rule = ["--:" if heading.endswith(">") else "---" for heading in headings]
    lines = [names, rule, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def figures(entries: Sequence[dict[str, Any]]) -> str:
    """Every figure beside its floor and what is asked of it."""
    rows = [
        (
            f"{entry['name']} ({entry['unit']})",
            number(entry["measured"]),
            number(entry["floor"]),
            entry["floor_is"],
            entry["limit"],
            "yes" if entry["holds"] else "**no**",
        )
        for entry in entries
    ]
    headings = ("figure", "measured>", "floor>", "the floor is", "asked", "holds")
    return f"{table(headings, rows)}\n\n{measured_on(entries)}"


def demo(runs: Sequence[dict[str, Any]]) -> str:
    """Solved share of held-out rows after each stage, by seed."""
    rows = [
        (
            str(run["seed"]),
            *(interval(run["stages"][stage]["solved"]) for stage in STAGES),
            interval(run["gains"][-1]["solved"], sign="+"),
        )
        for run in runs
    ]
    headings = ("seed", *STAGES.values(), "RL over the warm start")
    return f"{table(headings, rows)}\n\n{measured_on(runs)}"


def number(value: float) -> str:
    """Three digits, and no power of ten below a million."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def interval(found: dict[str, float], *, sign: str = "") -> str:
    """A mean with its interval."""
    mean, low, high = (format(found[name], f"{sign}.3f") for name in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"
