"""Sign: one sub-score explains the gain, while another that has room stays where it was.

The gain is shared out by the line that fits the score best: ``score ≈ Σ weight · sub-score`` over
the completions of the first and the latest steps. A sub-score's share is its weight times its own
gain, over the gain of the score.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.watch.finding import Finding
from trainer.watch.signs.moments import Moments, Span
from trainer.watch.signs.view import Scored

#: Gain, as a part of the scores' range and in standard errors, that is worth explaining.
LEAST_GAIN, LEAST_ERRORS = 0.1, 4.0
#: Share of the gain with which a sub-score explains it.
LEAST_SHARE = 0.9
#: A sub-score under this part of its best has room.
ROOM = 0.9
#: How much of the scores' variance the line must explain.
LEAST_FIT = 0.7


@dataclass
class SubScores:
    """Scores and sub-scores of the first and the latest steps.

    ``completions`` tell how the score is made of its parts; ``groups``, the means of each prompt's
    completions, which are alike, tell what was gained.
    """

    names: list[str] = field(default_factory=list)
    completions: Span = field(default_factory=Span)
    groups: Span = field(default_factory=Span)

    def step(self, groups: list[list[Scored]]) -> Finding | None:
        """Take in a step; the observations are the score, then each sub-score."""
        if not self.names:
            self.names = sorted({name for g in groups for c in g for name in c.sub_scores})
        if len(self.names) < 2:
            return None
        tables = [table for group in groups if (table := self._table(group))]
        self.completions.add(Moments.of(row for table in tables for row in table))
        apart = self.groups.add(Moments.of(np.mean(table, axis=0) for table in tables))
        return self._judge() if apart else None

    def _table(self, group: list[Scored]) -> list[list[float]]:
        whole = [c for c in group if all(name in c.sub_scores for name in self.names)]
        return [[c.score, *(c.sub_scores[name] for name in self.names)] for c in whole]

    def _judge(self) -> Finding | None:
        first, now = Moments.pooled(self.groups.first), Moments.pooled(self.groups.recent)
        if not first.count or not now.count:
            return None
        gain_K = now.mean_K - first.mean_K
        error_K = np.hypot(first.error_K, now.error_K)
        pooled = Moments.pooled([*self.completions.first, *self.completions.recent])
        scale = pooled.highest[0] - pooled.lowest[0]
        if gain_K[0] <= max(LEAST_GAIN * scale, LEAST_ERRORS * error_K[0]):
            return None
        weights = fitted_weights(pooled)
        if weights is None:
            return None
        share_K = weights * gain_K[1:] / gain_K[0]
        main = int(share_K.argmax())
        idle = [
            i
            for i, name in enumerate(self.names)
            if i != main
            and gain_K[1 + i] <= error_K[1 + i]
            and now.mean_K[1 + i] < ROOM * max(1.0, pooled.highest[1 + i])
        ]
        if share_K[main] < LEAST_SHARE or not idle:
            return None
        return self._finding(first, now, share_K, main, idle)

    def _finding(
        self,
        first: Moments,
        now: Moments,
        share_K: NDArray[np.float64],
        main: int,
        idle: list[int],
    ) -> Finding:
        parts: list[dict[str, Any]] = [
            {
                "name": name,
                "first": float(first.mean_K[1 + i]),
                "now": float(now.mean_K[1 + i]),
                "share": float(share_K[i]),
            }
            for i, name in enumerate(self.names)
        ]
        kept = ", ".join(f"{parts[i]['name']} ({parts[i]['now']:.2f})" for i in idle)
        return Finding(
            "one_sub_score_gains",
            f"The reward rose from {first.mean_K[0]:.2f} to {now.mean_K[0]:.2f}, and "
            f"{min(1.0, share_K[main]):.0%} of that comes from {parts[main]['name']} "
            f"({parts[main]['first']:.2f} to {parts[main]['now']:.2f}), while {kept} did not rise. "
            "Check that this is what the model should learn; if not, weigh the parts otherwise.",
            {
                "reward_first": float(first.mean_K[0]),
                "reward_now": float(now.mean_K[0]),
                "sub_scores": parts,
            },
        )


def fitted_weights(pooled: Moments) -> NDArray[np.float64] | None:
    """Weight of each sub-score in the line that fits best; ``None`` where no line fits."""
    covariance = pooled.covariance_KK
    variance, with_score = float(covariance[0, 0]), covariance[0, 1:]
    if not math.isfinite(variance) or variance <= 0:
        return None
    weights, *_ = np.linalg.lstsq(covariance[1:, 1:], with_score, rcond=1e-9)
    fit = float(weights @ with_score) / variance
    return np.asarray(weights) if fit >= LEAST_FIT else None
