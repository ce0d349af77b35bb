"""The plateau stop: training ends where the validations show no slope any more.

The slope is that of a straight line through the last ``window`` validations. The rows are the same
at each of them, so every row has a slope of its own, and the interval of their mean is bootstrapped
over the rows. Where there are few rows, or one figure only, it is the line's own: least squares
with Student's t.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.statistics import interval
from trainer.watch.finding import Stop

#: Rows with a figure at every validation from which their own slopes are used.
MIN_ROWS = 8

#: Student's t for 95 % in the middle, by degrees of freedom from 1.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


@dataclass
class Validations:
    """The last validations: their steps, and a figure for each row (``None`` where it has none)."""

    steps: list[int] = field(default_factory=list)
    rows: list[list[float | None]] = field(default_factory=list)


class Plateau:
    """Ends training after ``window`` validations without a gain; ``window`` 0 never does."""

    def __init__(self, window: int, validations: Validations) -> None:
        self._window, self._kept = window, validations

    def add(self, step: int, figures: list[float | None], *, lower_is_better: bool) -> Stop | None:
        """Take in a validation.

        Args:
            figures: of each row, in the order of the earlier ones; or one figure for all.
        """
        if self._window == 0:
            return None
        if step in self._kept.steps[-1:]:
            # The start after a warm start stands in for the base model: training begins there.
            del self._kept.steps[-1], self._kept.rows[-1]
        self._kept.steps.append(step)
        self._kept.rows.append(figures)
        del self._kept.steps[: -self._window], self._kept.rows[: -self._window]
        if len(self._kept.steps) < self._window:
            return None
        slope = slope_interval(self._kept)
        if slope is None:
            return None
        gain_is_sure = slope["high"] < 0 if lower_is_better else slope["low"] > 0
        if gain_is_sure:
            return None
        name = "loss" if lower_is_better else "reward"
        return Stop(
            "plateau",
            f"Training ends here: over the last {self._window} validations, of steps "
            f"{self._kept.steps[0]} to {step}, the {name} changed by {slope['mean']:+.2g} per step "
            f"(95 % interval {slope['low']:+.2g} to {slope['high']:+.2g}), which is no sure gain.",
            {"steps": list(self._kept.steps), "slope": slope, "means": self._means()},
        )

    def _means(self) -> list[float | None]:
        known = [[value for value in row if value is not None] for row in self._kept.rows]
        return [sum(values) / len(values) if values else None for values in known]


def slope_interval(validations: Validations) -> dict[str, Any] | None:
    """Mean and 95 % interval of the slope per step; ``None`` where no figure can tell."""
    columns = [c for c in zip(*validations.rows, strict=True) if None not in c]
    if not columns:
        return None
    steps = np.asarray(validations.steps, dtype=np.float64)
    figures = np.asarray(columns, dtype=np.float64).T  # validations × rows
    centred = steps - steps.mean()
    spread = float(centred @ centred)
    if figures.shape[1] >= MIN_ROWS:
        return interval((centred @ figures / spread).tolist())
    means = figures.mean(axis=1)
    slope = float(centred @ means / spread)
    rest = means - means.mean() - slope * centred
    freedom = len(steps) - 2
    error = math.sqrt(float(rest @ rest) / freedom / spread)
    reach = (_T[freedom - 1] if freedom <= len(_T) else 1.96) * error
    return {"mean": slope, "low": slope - reach, "high": slope + reach}
