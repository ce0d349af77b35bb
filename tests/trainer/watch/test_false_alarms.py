"""Jobs in which nothing is wrong, over their whole length: warnings are rare.

The figures in docs/guards.md come from ``JOBS`` = 100 of each kind.
"""

import math
from collections import Counter

import numpy as np
import pytest

from graders.outcome import Score
from tests.trainer.hyperparameters import LIMITS
from tests.trainer.rollouts import rollout
from trainer.sampling import Rollout
from trainer.spec import LimitsSpec
from trainer.watch.watch import Watch

#: Simulated jobs of each kind.
JOBS = 10
STEPS, GROUPS, SIZE, ROWS = 100, 8, 8, 64


class Simulated:
    """A job whose prompts differ in difficulty and length, and whose skill may rise."""

    def __init__(self, seed: int, rise: float) -> None:
        self._draw, self._rise = np.random.default_rng(seed), rise
        self._difficulty = self._draw.normal(0, 1.5, 400)
        self._validation = self._draw.normal(0, 1.5, ROWS)
        self._monitor = self._validation + self._draw.normal(0, 0.5, ROWS)
        self.said: list[str] = []

    def run(self) -> list[str]:
        """The codes of all warnings."""
        watch = Watch(LimitsSpec(**LIMITS), lambda finding: self.said.append(finding.code))
        self._validate(watch, 0)
        for step in range(1, STEPS + 1):
            groups = [self._group(d, step) for d in self._draw.choice(self._difficulty, GROUPS)]
            data = {
                "groups_without_spread": 1,
                "trained_tokens": 0,
                "train_mean_reward": 0.5,
                "truncated_share": 0.0,
                "abstentions": 0,
            }
            watch.reinforced(step, groups, data)
            if step % 10 == 0:
                self._validate(watch, step)
        return self.said

    def _chance(self, difficulty: float, step: int) -> float:
        return 1 / (1 + math.exp(0.5 - difficulty - self._rise * step / STEPS))

    def _solved(self, difficulty: float, step: int) -> float:
        return float(self._draw.random() < self._chance(difficulty, step))

    def _group(self, difficulty: float, step: int) -> list[Rollout]:
        return [self._completion(difficulty, step) for _ in range(SIZE)]

    def _completion(self, difficulty: float, step: int) -> Rollout:
        exact, form = self._solved(difficulty, step), self._solved(difficulty + 1, step)
        tokens = max(1, round(40 + 10 * difficulty + 3 * exact + self._draw.normal(0, 8)))
        score = Score(0.7 * exact + 0.3 * form, {"exact": exact, "form": form})
        return rollout(score, tokens=tokens)

    def _validate(self, watch: Watch, step: int) -> None:
        scores: list[float | None] = [self._solved(d, step) for d in self._validation]
        monitor: list[float | None] = [self._solved(d, step) for d in self._monitor]
        watch.validated(step, scores, monitor=monitor)


@pytest.mark.slow
@pytest.mark.parametrize("rise", [0.0, 3.0], ids=["flat", "rising"])
def test_false_alarms_are_rare(rise: float) -> None:
    said = Counter(code for seed in range(JOBS) for code in Simulated(seed, rise).run())
    assert said.total() <= JOBS // 10, said
