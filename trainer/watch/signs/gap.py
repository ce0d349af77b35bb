"""Sign: the training rows gain and the validation rows do not follow.

Training completions are sampled at the training temperature, validation completions greedily, so
the two differ from the beginning. What counts is that the gap has grown and that training is ahead.
"""

import math
from dataclasses import dataclass, field

from trainer.watch.finding import Finding
from trainer.watch.signs.moments import RECENT_STEPS, Moments, Z
from trainer.watch.signs.view import Scored

#: How far training must be ahead, and the gap must have grown, as parts of the scores' range.
LEAST_GAP = 0.1


@dataclass
class Gap:
    """Mean rewards of the latest groups and of the validation rows, and the gap at the start.

    ``start`` is the first gap and its standard error; ``base`` the validation before step 1, and
    its.
    """

    train: list[Moments] = field(default_factory=list)
    base: list[float] | None = None
    start: list[float] | None = None
    low: float = math.inf
    high: float = -math.inf

    def step(self, groups: list[list[Scored]]) -> None:
        """Take in a training step: each group counts once, as its completions are alike."""
        means = [sum(c.score for c in g) / len(g) for g in groups]
        self._seen([c.score for g in groups for c in g])
        self.train.append(Moments.of([m] for m in means))
        del self.train[:-RECENT_STEPS]
        if self.start is None and self.base is not None:
            self.start = self._gap(*self.base)

    def validated(self, scores: list[float | None]) -> Finding | None:
        """Take in a validation."""
        known = [score for score in scores if score is not None]
        if len(known) < 2:
            return None
        self._seen(known)
        valid = Moments.of([score] for score in known)
        mean, error = float(valid.mean_K[0]), float(valid.error_K[0])
        if not self.train:
            self.base = [mean, error]
            return None
        now = self._gap(mean, error)
        if now is None:
            return None
        if self.start is None:
            self.start = now
            return None
        return self._judge(now, mean)

    def _judge(self, now: list[float], valid: float) -> Finding | None:
        assert self.start is not None
        growth = now[0] - self.start[0]
        reach = Z * math.hypot(now[1], self.start[1])
        least = LEAST_GAP * (self.high - self.low)
        if growth - reach <= least or now[0] - Z * now[1] <= least:
            return None
        train = valid + now[0]
        return Finding(
            "validation_lags",
            f"Training rows score {train:.2f} and validation rows {valid:.2f}: the gap grew by "
            f"{growth:.2f} (95 % interval {growth - reach:.2f} to {growth + reach:.2f}) since the "
            "start. The model learns the training rows, or what the grader likes in them; use more "
            "rows, fewer epochs, or a checkpoint from before.",
            {
                "train_reward": train,
                "valid_reward": valid,
                "gap_at_start": self.start[0],
                "gap_growth": {"mean": growth, "low": growth - reach, "high": growth + reach},
            },
        )

    def _gap(self, valid: float, error: float) -> list[float] | None:
        train = Moments.pooled(self.train)
        if train.count < 2:
            return None
        return [float(train.mean_K[0]) - valid, math.hypot(float(train.error_K[0]), error)]

    def _seen(self, scores: list[float]) -> None:
        self.low, self.high = min([self.low, *scores]), max([self.high, *scores])
