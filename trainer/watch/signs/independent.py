"""Sign: the reward on the validation rows rises, and an independent grader sees no gain.

Both grade the same completions. Rows are compared with themselves at the first validation, so the
intervals are those of paired differences; each grader's scores count as parts of their range.
"""

from dataclasses import dataclass, field
from typing import Any

from trainer.statistics import interval
from trainer.watch.finding import Finding

#: Rows that both graders scored at both validations, at least.
MIN_ROWS = 8
#: Validations in a row that must agree: there are many, and each has its noise.
IN_A_ROW = 2

Scores = list[float | None]


@dataclass
class Independent:
    """What both graders said at the first validation, row by row.

    ``seen`` counts the validations in a row at which only the reward had risen.
    """

    reward: Scores = field(default_factory=list)
    monitor: Scores = field(default_factory=list)
    seen: int = 0

    def validated(self, reward: Scores, monitor: Scores) -> Finding | None:
        """Take in what both said of the same completions, in the order of the rows."""
        if not self.reward:
            self.reward, self.monitor = reward, monitor
            return None
        pairs = _paired(self.reward, reward), _paired(self.monitor, monitor)
        both = [
            (*mine, *theirs)
            for mine, theirs in zip(*pairs, strict=True)
            if mine is not None and theirs is not None
        ]
        if len(both) < MIN_ROWS:
            return None
        mine, theirs = _gains([b[:2] for b in both]), _gains([b[2:] for b in both])
        ahead = interval([a - b for a, b in zip(mine, theirs, strict=True)])
        gain, independent = interval(mine), interval(theirs)
        apart = gain["low"] > 0 >= independent["low"] and ahead["low"] > 0
        self.seen = self.seen + 1 if apart else 0
        if self.seen < IN_A_ROW:
            return None
        return _finding(gain, independent, ahead, len(both))


def _finding(
    gain: dict[str, Any], independent: dict[str, Any], ahead: dict[str, Any], rows: int
) -> Finding:
    return Finding(
        "monitor_stays_flat",
        f"On {rows} validation rows the reward rose by {_shown(gain)} of its range since the "
        f"first validation, and the monitor_grader sees {_shown(independent)}: what the grader "
        "rewards may not be what you want. Read samples with a high reward and a low monitor "
        "score.",
        {"reward_gain": gain, "monitor_gain": independent, "difference": ahead, "rows": rows},
    )


def _paired(before: Scores, after: Scores) -> list[tuple[float, float] | None]:
    return [None if b is None or a is None else (b, a) for b, a in zip(before, after, strict=True)]


def _gains(pairs: list[tuple[float, float]]) -> list[float]:
    seen = [value for pair in pairs for value in pair]
    scale = max(seen) - min(seen) or 1.0
    return [(after - before) / scale for before, after in pairs]


def _shown(figures: dict[str, Any]) -> str:
    return f"{figures['mean']:+.2f} [{figures['low']:+.2f}, {figures['high']:+.2f}]"
