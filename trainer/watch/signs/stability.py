"""Signs of trouble: the reward falls, answers become alike without being right, nothing is left."""

import math
from dataclasses import dataclass, field

from trainer.limits import REFUSE_SHARE
from trainer.watch.finding import Finding
from trainer.watch.signs.moments import FIRST_STEPS, RECENT_STEPS

#: Fall of the reward from its best, as a part of its range and in standard errors.
LEAST_FALL, LEAST_ERRORS = 0.2, 5.0
#: Entropy, as a part of that of the first steps, under which answers are alike.
ALIKE = 0.1
#: Share of solved completions over which alike answers are no trouble.
SOLVED = 0.5
#: KL to the start, in nats per token, from which the user is warned.
FAR = 0.5
#: Steps in a row with hardly a group to learn from.
IDLE_STEPS = 10


@dataclass
class Stability:
    """Means of the latest steps, the best ones so far, and the entropy of the first steps."""

    rewards: list[list[float]] = field(default_factory=list)
    best: list[float] | None = None
    best_step: int = 0
    low: float = math.inf
    high: float = -math.inf
    entropy_first: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    idle: int = 0

    def reward(self, step: int, scores: list[float]) -> Finding | None:
        """Take in the mean score of each group of a step: completions of one prompt are alike."""
        if len(scores) < 2:
            return None
        self.low, self.high = min([self.low, *scores]), max([self.high, *scores])
        mean = sum(scores) / len(scores)
        variance = sum((s - mean) ** 2 for s in scores) / (len(scores) - 1)
        self.rewards.append([mean, variance / len(scores)])
        del self.rewards[:-RECENT_STEPS]
        if len(self.rewards) < RECENT_STEPS:
            return None
        now = sum(m for m, _ in self.rewards) / RECENT_STEPS
        error2 = sum(e for _, e in self.rewards) / RECENT_STEPS**2
        if self.best is None or now >= self.best[0]:
            self.best, self.best_step = [now, error2], step
            return None
        fall = self.best[0] - now
        sure = LEAST_ERRORS * math.sqrt(error2 + self.best[1])
        if fall <= max(sure, LEAST_FALL * (self.high - self.low)):
            return None
        return Finding(
            "reward_falls",
            f"The mean reward of the last {RECENT_STEPS} steps is {now:.2f}, after "
            f"{self.best[0]:.2f} up to step {self.best_step}: training does harm by now. Lower "
            "learning_rate; the checkpoint with the best validation reward is kept.",
            {"reward_best": self.best[0], "best_step": self.best_step, "reward_now": now},
        )

    def alike(self, entropy: float, *, solved_share: float) -> Finding | None:
        """Take in the mean entropy of a step that trained on something."""
        if len(self.entropy_first) < FIRST_STEPS:
            self.entropy_first.append(entropy)
            return None
        self.entropy.append(entropy)
        del self.entropy[:-RECENT_STEPS]
        before, now = _mean(self.entropy_first), _mean(self.entropy)
        full = len(self.entropy) == RECENT_STEPS
        if not full or now >= ALIKE * before or solved_share >= SOLVED:
            return None
        return Finding(
            "entropy_falls",
            f"The entropy fell from {before:.3g} to {now:.3g} nats per token while "
            f"{solved_share:.0%} of the completions are solved: answers become alike before they "
            "are right. Lower learning_rate, or raise temperature or kl_coefficient.",
            {"entropy_first": before, "entropy_now": now, "solved_share": solved_share},
        )

    def left(self, *, without_spread: int, groups: int) -> Finding | None:
        """Take in how many groups of a step had nothing to learn from."""
        self.idle = self.idle + 1 if without_spread >= REFUSE_SHARE * groups else 0
        if self.idle < IDLE_STEPS:
            return None
        return Finding(
            "nothing_to_learn",
            f"For {IDLE_STEPS} steps at least {REFUSE_SHARE:.0%} of the groups had no spread of "
            "scores: there is hardly anything left to learn from these rows. Cancel the job, or "
            "set limits.plateau_window for the next one.",
            {"steps": self.idle, "groups_without_spread": without_spread, "groups": groups},
        )


def far(kl: float) -> Finding | None:
    """Whether the policy has moved far from where it started."""
    if kl <= FAR:
        return None
    return Finding(
        "kl_is_high",
        f"The mean KL to the starting model is {kl:.2f} nats per token: the model has moved far. "
        "Raise kl_coefficient or lower learning_rate; limits.max_kl ends jobs that run away.",
        {"kl": kl},
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
