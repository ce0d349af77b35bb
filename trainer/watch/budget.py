"""Budgets of seconds and tokens, over all attempts of a job.

A step that would not fit is not begun: a step counts as long, and as large, as the longest and the
largest of the last few. So a budget is passed by at most what one step takes longer than those.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.spec import LimitsSpec
from trainer.watch.finding import Finding, Say, Stop

#: Shares of a budget at which the user is warned.
THRESHOLDS = (0.5, 0.8, 1.0)
#: Steps that the next one is judged by.
RECENT = 5


@dataclass
class Spent:
    """What a job has used up; kept in its checkpoints.

    ``tokens`` counts every completion token sampled for training and every token trained on;
    ``recent`` those of the last steps of a phase, and ``durations`` their seconds; ``told`` the
    shares of each budget that the user was warned of.
    """

    seconds: float = 0.0
    tokens: int = 0
    recent: dict[str, list[int]] = field(default_factory=dict)
    durations: dict[str, list[float]] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)


class Budget:
    """Counts what is spent, and says when there is no room for another step.

    Args:
        spent: what earlier attempts used up.
        clock: seconds from any origin.
    """

    def __init__(
        self,
        limits: LimitsSpec,
        spent: Spent,
        say: Say,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._spent, self._say, self._clock = limits, spent, say, clock
        # A checkpoint knows nothing of what was lost after it.
        self._before, self._began = max(spent.seconds, limits.seconds_before), clock()
        self._step: tuple[str, float] | None = None

    @property
    def spent(self) -> Spent:
        """What is used up by now."""
        self._spent.seconds = self._before + self._clock() - self._began
        return self._spent

    def before_step(self, phase: str) -> Stop | None:
        """Begin a step of ``phase``, unless there is no room for it."""
        now = self._clock()
        if self._step is not None:
            # From start to start: evaluations and checkpoints in between take their time too.
            before, since = self._step
            durations = self._spent.durations.setdefault(before, [])
            durations.append(now - since)
            del durations[:-RECENT]
        stop = self._seconds_left(phase) or self._tokens_left(phase)
        self._step = (phase, now) if stop is None else None
        return stop

    def count(self, phase: str, tokens: int) -> None:
        """Add the tokens of a finished step of ``phase``, and warn where a share is passed."""
        self._spent.tokens += tokens
        recent = self._spent.recent.setdefault(phase, [])
        recent.append(tokens)
        del recent[:-RECENT]
        for name, used, limit in self._used():
            self._warn(name, used, limit)

    def _used(self) -> list[tuple[str, float, int | None]]:
        return [
            ("max_train_seconds", self.spent.seconds, self._limits.max_train_seconds),
            ("max_tokens", self.spent.tokens, self._limits.max_tokens),
        ]

    def _seconds_left(self, phase: str) -> Stop | None:
        limit, used = self._limits.max_train_seconds, self.spent.seconds
        next_step = max(self._spent.durations.get(phase, []), default=0.0)
        if limit is None or used + next_step < limit:
            return None
        return Stop(
            "max_train_seconds",
            f"Training ends here: of max_train_seconds={limit}, {used:.0f} are used, and the last "
            f"steps took up to {next_step:.0f}.",
            {"limit": limit, "used": round(used, 1), "next_step": round(next_step, 1)},
        )

    def _tokens_left(self, phase: str) -> Stop | None:
        limit, used = self._limits.max_tokens, self._spent.tokens
        next_step = max(self._spent.recent.get(phase, []), default=0)
        if limit is None or used + max(1, next_step) <= limit:
            return None
        return Stop(
            "max_tokens",
            f"Training ends here: of max_tokens={limit:,}, {used:,} are used, and the last steps "
            f"took up to {next_step:,}.",
            {"limit": limit, "used": used, "next_step": next_step},
        )

    def _warn(self, name: str, used: float, limit: int | None) -> None:
        if limit is None:
            return
        share = used / limit
        passed = max((t for t in THRESHOLDS if share >= t), default=0.0)
        if passed <= self._spent.told.get(name, 0.0):
            return
        self._spent.told[name] = passed
        self._say(
            Finding(
                "budget",
                f"{share:.0%} of {name} is used: {used:,.0f} of {limit:,}.",
                {"budget": name, "limit": limit, "used": round(used, 1), "share": round(share, 4)},
            )
        )
