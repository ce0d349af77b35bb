"""Runs of one task and side as one curve: held-out score by step and by minute, with intervals."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Draws of a bootstrap, and its seed: the page is the same whenever it is written.
DRAWS, SEED = 4000, 0


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Whether the two intervals share a value."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Curve:
    """Runs that differ only in their seed.

    ``scores`` has a row's score for every scored step, seed and held-out row ``[K, S, R]``;
    ``minutes [K]`` are those of training until the step and ``greedy [K]`` the scores of greedy
    completions, both mean over the seeds.
    """

    steps: list[int]
    minutes: list[float]
    scores: NDArray[np.float64]
    greedy: list[float]
    step_seconds: float

    @classmethod
    def of(cls, runs: Sequence[dict[str, Any]]) -> "Curve":
        """The curve of kept runs of the same order and start.

        Raises:
            ValueError: they differ in more than the seed.
        """
        orders = [({**run["order"], "seed": None}, run["start"]) for run in runs]
        if any(order != orders[0] for order in orders):
            names = ", ".join(f"{run['task']}-{run['side']}-{run['seed']}" for run in runs)
            raise ValueError(f"The runs {names} had different orders. Run `make bench-learning`.")
        steps = [entry["step"] for entry in runs[0]["scores"]]
        seconds = np.array([[step["seconds"] for step in run["steps"]] for run in runs])
        until = np.concatenate([np.zeros((len(runs), 1)), seconds.cumsum(axis=1)], axis=1)
        scores = [[entry["rows"] for entry in run["scores"]] for run in runs]
        return cls(
            steps=steps,
            minutes=[float(until[:, step].mean() / 60) for step in steps],
            scores=np.array(scores).swapaxes(0, 1),
            greedy=np.mean([[e["greedy"] for e in run["scores"]] for run in runs], axis=0).tolist(),
            step_seconds=float(np.median(seconds)),
        )

    @property
    def seeds(self) -> int:
        """How many runs there are."""
        return int(self.scores.shape[1])

    def intervals(self) -> list[Interval]:
        """The mean score of every scored step."""
        return [bootstrap(scores) for scores in self.scores]

    def minutes_to(self, score: float) -> float:
        """Minutes until the mean score is reached, between two scored steps in proportion.

        Raises:
            ValueError: it never is.
        """
        means = self.scores.mean(axis=(1, 2))
        # Sums in another order may differ in their last digit.
        reached = np.flatnonzero(means >= score - 1e-12)
        if not len(reached):
            raise ValueError(f"The score {score} is never reached.")
        after = int(reached[0])
        if after == 0:
            return 0.0
        rise = (score - means[after - 1]) / (means[after] - means[after - 1])
        before = self.minutes[after - 1]
        return float(before + rise * (self.minutes[after] - before))


def bootstrap(scores_SR: NDArray[np.float64]) -> Interval:
    """Mean of scores by seed and row, with an interval over drawn seeds and drawn rows.

    The held-out rows are the same for every seed, so they are drawn for all seeds together.
    """
    seeds, rows = scores_SR.shape
    random = np.random.default_rng(SEED)
    row_counts = random.multinomial(rows, np.full(rows, 1 / rows), size=DRAWS) / rows
    seed_counts = random.multinomial(seeds, np.full(seeds, 1 / seeds), size=DRAWS) / seeds
    means = np.einsum("ds,sr,dr->d", seed_counts, scores_SR, row_counts, optimize=True)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(scores_SR.mean()), float(low), float(high))


def kept_runs(folder: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The kept runs by task and side, in the order of their seeds."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text())
        found.setdefault((run["task"], run["side"]), []).append(run)
    return {key: sorted(runs, key=lambda run: run["seed"]) for key, runs in found.items()}
