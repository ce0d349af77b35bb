"""The page of benchmarks: it says what was measured, and is written from the JSON alone."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.machine import ROOT
from bench.report import learning, rl
from bench.report.page import write
from bench.report.plot import Line, Panel, chart, ticks
from bench.report.tables import figures, number, table

MACHINE = {"cpu": "Some CPU", "cores": 2, "memory_gib": 24, "python": "3.11.7"}
WHERE = {"machine": MACHINE, "commit": "abc123", "at": "2026-11-30T12:00:00+00:00"}
ORDER = {
    "steps": 2,
    "learning_rate": 1e-5,
    "max_completion_tokens": 12,
    "grader": {"type": "number"},
}


def keep(folder: Path, side: str, seed: int, scores: list[float], seconds: float) -> None:
    """Write a run of two steps, scored before and after each on four equal rows."""
    result: dict[str, Any] = {
        "task": "sums",
        "side": side,
        "seed": seed,
        "order": ORDER,
        "start": {},
        "steps": [{"seconds": seconds}] * 2,
        "scores": [
            {"step": step, "rows": [score] * 4, "greedy": 0.9} for step, score in enumerate(scores)
        ],
        **WHERE,
    }
    (folder / f"sums-{side}-{seed}.json").write_text(json.dumps(result))


def test_section_compares_both_sides(tmp_path: Path) -> None:
    for seed in (1, 2):
        keep(tmp_path, "ours", seed, [0.1, 0.4, 0.5], seconds=3)
        keep(tmp_path, "trl", seed, [0.1, 0.3, 0.5], seconds=30)
    section = learning.section(tmp_path, tmp_path, "plots")
    sampled = "| sums | 2 | 0.100 | 0.500 [0.500, 0.500] | 0.500 [0.500, 0.500] |"
    assert f"{sampled} +0.000 [+0.000, +0.000] | 0.900 | 0.900 | 0.900 |" in section
    assert "| sums | 3.0 | 30.0 | 10.0 | 0.1 | 1.0 | 0.500 |" in section
    assert "below TRL's at no step; after the last one they overlap" in section
    assert "![sums: held-out score](plots/learning-sums.svg)" in section
    assert "2 cores of Some CPU, 24 GiB, Python 3.11.7, 2026-11-30, at `abc123`" in section
    assert "2 steps at a learning rate of 1e-5" in section
    assert "up to 12 tokens, grader `number`" in section
    ElementTree.fromstring((tmp_path / "learning-sums.svg").read_text())


def test_section_says_at_which_steps_we_are_below(tmp_path: Path) -> None:
    keep(tmp_path, "ours", 1, [0.1, 0.2, 0.5], seconds=3)
    keep(tmp_path, "trl", 1, [0.1, 0.3, 0.6], seconds=3)
    assert "lies below TRL's at step 1, 2" in learning.section(tmp_path, tmp_path, "plots")


def test_seeds_of_one_side_only_are_left_out(tmp_path: Path) -> None:
    keep(tmp_path, "ours", 1, [0.1, 0.2, 0.5], seconds=3)
    keep(tmp_path, "ours", 2, [0.9, 0.9, 0.9], seconds=3)
    keep(tmp_path, "trl", 1, [0.1, 0.3, 0.5], seconds=3)
    (found,), used = learning.comparisons(tmp_path)
    assert found.ours.seeds == found.trl.seeds == 1
    assert [run["seed"] for run in used] == [1, 1]


def test_a_task_of_one_side_only_is_not_compared(tmp_path: Path) -> None:
    keep(tmp_path, "ours", 1, [0.1, 0.2, 0.5], seconds=3)
    assert learning.section(tmp_path, tmp_path, "plots") == "Nothing has been measured yet."


def test_the_committed_page_is_what_the_committed_json_says(tmp_path: Path) -> None:
    write(ROOT / "bench" / "results", tmp_path / "benchmarks.md")
    written, committed = tmp_path / "benchmarks.md", ROOT / "docs" / "benchmarks.md"
    assert written.read_text() == committed.read_text(), "run make bench-report"
    plots = {path.name: path.read_text() for path in (tmp_path / "benchmarks").iterdir()}
    folder = ROOT / "docs" / "benchmarks"
    kept = {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}
    assert plots == kept, "run make bench-report"


def test_steps_are_shown_by_phase(tmp_path: Path) -> None:
    phases = {"sampling": 1, "grading": 0.25, "updating": 2, "sync": 0.5, "other": 0}
    row = {"completions_per_s": 16, "step_s": 3.75, "phases_s": phases, "peak_mib": 5120}
    kept = {"speed": {"warm": {"contenders": {"ours": row}, **WHERE}}}
    (tmp_path / "rl_runs.json").write_text(json.dumps(kept))
    title, shown, where = rl.section(tmp_path)
    assert title == "### speed: warm"
    assert "| ours | 16 | 3.75 | 1.00 | 0.25 | 2.00 | 0.50 | 0.00 | 5,120 |" in shown
    assert "abc123" in where


def test_what_was_not_measured_has_no_section(tmp_path: Path) -> None:
    assert rl.section(tmp_path) == []


def test_figure_stands_beside_its_floor_and_what_is_asked() -> None:
    entry = {
        "name": "grading",
        "measured": 2.0,
        "floor": 0.5,
        "unit": "ms",
        "floor_is": "a function",
        "limit": "at most 1 ms",
        "holds": False,
        **WHERE,
    }
    assert "| grading (ms) | 2 | 0.5 | a function | at most 1 ms | **no** |" in figures([entry])


@pytest.mark.parametrize(
    ("value", "shown"), [(0.01234, "0.0123"), (12.34, "12.3"), (12345.6, "12,346"), (2e7, "2e+07")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_table_aligns_what_is_marked() -> None:
    assert table(("a", "b>"), [("1", "2")]) == "| a | b |\n| --- | --: |\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("top", "wanted"),
    [(1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (30, [0, 10, 20, 30]), (7, [0, 2, 4, 6])],
)
def test_ticks_are_round(top: float, wanted: list[float]) -> None:
    assert ticks(top) == wanted


def test_chart_puts_points_where_their_values_are() -> None:
    line = Line("a < b", "ours", [(0, 0.0, 0.0, 0.0), (10, 0.5, 0.4, 0.6), (20, 1.0, 1.0, 1.0)])
    svg = chart([Panel("title", "steps", [line])])
    ElementTree.fromstring(svg)
    points = re.search(r'<polyline class="line ours" points="([^"]+)"', svg)
    assert points is not None
    (x0, y0), (x1, y1), (x2, y2) = (map(float, p.split(",")) for p in points[1].split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert y0 > y2
