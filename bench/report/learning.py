"""The section on learning: ours beside TRL's trainer, by step and by minute, task after task."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report.curves import Curve, Interval, bootstrap, kept_runs
from bench.report.plot import Line, Panel, chart
from bench.report.tables import interval, table
from bench.report.where import measured_on

#: What the two sides are called, and the style of their lines.
NAMES = {"ours": ("rft-service", "ours"), "trl": ("TRL GRPOTrainer", "other")}


@dataclass(frozen=True)
class Comparison:
    """Both sides of a task."""

    task: str
    ours: Curve
    trl: Curve
    order: dict[str, Any]

    @property
    def final(self) -> tuple[Interval, Interval]:
        """The scores after the last step: ours, TRL's."""
        return self.ours.intervals()[-1], self.trl.intervals()[-1]

    @property
    def lead(self) -> Interval:
        """Our last score less TRL's, row by row and seed by seed."""
        return bootstrap(self.ours.scores[-1] - self.trl.scores[-1])

    @property
    def below_at(self) -> list[int]:
        """The steps at which our whole interval lies below TRL's."""
        pairs = zip(self.ours.steps, self.ours.intervals(), self.trl.intervals(), strict=True)
        return [step for step, ours, trl in pairs if ours.high < trl.low]

    @property
    def times_faster(self) -> float:
        """How many of our steps fit into one of TRL's."""
        return self.trl.step_seconds / self.ours.step_seconds


def comparisons(folder: Path) -> tuple[list[Comparison], list[dict[str, Any]]]:
    """The tasks of which both sides were measured, and all runs behind them.

    Seeds that only one side has are left out.
    """
    runs = kept_runs(folder)
    found, used = [], []
    for task in dict.fromkeys(task for task, _ in runs):
        sides = [runs.get((task, side), []) for side in NAMES]
        shared = set.intersection(*({run["seed"] for run in side} for side in sides))
        if shared:
            ours, trl = ([run for run in side if run["seed"] in shared] for side in sides)
            found.append(Comparison(task, Curve.of(ours), Curve.of(trl), ours[0]["order"]))
            used += [*ours, *trl]
    return found, used


def section(folder: Path, plots: Path, link: str) -> str:
    """Write the plots into ``plots`` and return the section, whose images lie below ``link``."""
    found, runs = comparisons(folder)
    if not found:
        return "Nothing has been measured yet."
    parts = [_scores(found), "\n".join(map(verdict, found)), _times(found)]
    for each in found:
        name = f"learning-{each.task}.svg"
        (plots / name).write_text(plot(each))
        image = f"![{each.task}: held-out score]({link}/{name})"
        parts += [f"### {each.task}", _settings(each.order), image]
    return "\n\n".join([*parts, measured_on(runs)])


def plot(comparison: Comparison) -> str:
    """Score by optimiser step beside score by minute."""
    by_step, by_minute = [], []
    for side, curve in (("ours", comparison.ours), ("trl", comparison.trl)):
        name, style = NAMES[side]
        found = [(each.mean, each.low, each.high) for each in curve.intervals()]
        steps = zip(curve.steps, found, strict=True)
        minutes = zip(curve.minutes, found, strict=True)
        by_step.append(Line(name, style, [(x, *y) for x, y in steps]))
        by_minute.append(Line(name, style, [(x, *y) for x, y in minutes]))
    return chart(
        [
            Panel("Held-out score by optimiser step", "steps", by_step),
            Panel("The same by minutes of training", "minutes", by_minute),
        ]
    )


def _scores(found: Sequence[Comparison]) -> str:
    rows = []
    for each in found:
        ours, trl = each.final
        start = each.ours.intervals()[0].mean
        scores = (f"{start:.3f}", _shown(ours), _shown(trl), _shown(each.lead, sign="+"))
        greedy = (each.ours.greedy[0], each.ours.greedy[-1], each.trl.greedy[-1])
        rows.append((each.task, str(each.ours.seeds), *scores, *(f"{g:.3f}" for g in greedy)))
    sampled = ("start>", "ours, last step", "TRL, last step", "ours less TRL")
    return table(("task", "seeds>", *sampled, "greedy, start>", "ours>", "TRL>"), rows)


def _times(found: Sequence[Comparison]) -> str:
    rows = []
    for each in found:
        target = min(last.mean for last in each.final)
        minutes = (each.ours.minutes_to(target), each.trl.minutes_to(target))
        times = (each.ours.step_seconds, each.trl.step_seconds, each.times_faster, *minutes)
        rows.append((each.task, *(f"{value:.1f}" for value in times), f"{target:.3f}"))
    step = ("seconds a step, ours>", "TRL>", "times faster>")
    return table(("task", *step, "minutes, ours>", "TRL>", "to a score of>"), rows)


def verdict(each: Comparison) -> str:
    """Whether we are ever below TRL, as a list item."""
    if each.below_at:
        steps = ", ".join(map(str, each.below_at))
        return f"- **{each.task}**: our interval lies below TRL's at step {steps}."
    ours, trl = each.final
    after = "overlap" if ours.overlaps(trl) else "lie apart, ours above"
    return (
        f"- **{each.task}**: our interval lies below TRL's at no step; "
        f"after the last one they {after}."
    )


def _settings(order: dict[str, Any]) -> str:
    rate = f"{order['learning_rate']:g}".replace("e-0", "e-")
    return (
        f"{order['steps']} steps at a learning rate of {rate}, completions of up to "
        f"{order['max_completion_tokens']} tokens, grader `{order['grader']['type']}`."
    )


def _shown(found: Interval, *, sign: str = "") -> str:
    return interval(dataclasses.asdict(found), sign=sign)
