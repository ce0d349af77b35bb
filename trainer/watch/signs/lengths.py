"""Sign: the score follows the length of the answers, and their length has changed with it."""

import math
from dataclasses import dataclass, field

from trainer.watch.finding import Finding
from trainer.watch.signs.moments import RECENT_STEPS, Moments, Span, Z
from trainer.watch.signs.view import Scored

#: Correlation within groups that its interval must lie beyond.
LEAST_CORRELATION = 0.4
#: Change of the mean length against the first steps.
LEAST_CHANGE = 0.25


@dataclass
class Lengths:
    """Lengths of the first and the latest steps; of these also how scores go with them.

    ``groups`` counts those behind each of the latest steps.
    """

    lengths: Span = field(default_factory=Span)
    within: list[Moments] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)

    def step(self, groups: list[list[Scored]]) -> Finding | None:
        """Take in a step."""
        apart = self.lengths.add(Moments.of([float(c.length)] for g in groups for c in g))
        if self.lengths.recent:
            self.within.append(within_groups(groups))
            self.groups.append(len(groups))
            del self.within[:-RECENT_STEPS], self.groups[:-RECENT_STEPS]
        return self._judge() if apart else None

    def _judge(self) -> Finding | None:
        first, now = Moments.pooled(self.lengths.first), Moments.pooled(self.lengths.recent)
        if not first.count or not now.count:
            return None
        before, after = float(first.mean_K[0]), float(now.mean_K[0])
        within = Moments.pooled(self.within)
        r = correlation(within)
        freedom = within.count - sum(self.groups) - 2
        if r is None or freedom < 1 or before == 0 or abs(r) >= 1:
            return None
        # Fisher's z; the means of the groups were taken from the data.
        low, high = (math.tanh(math.atanh(r) + s * Z / math.sqrt(freedom)) for s in (-1, 1))
        change = after / before - 1
        together = (low > LEAST_CORRELATION and change > LEAST_CHANGE) or (
            high < -LEAST_CORRELATION and change < -LEAST_CHANGE
        )
        if not together:
            return None
        longer = "longer" if change > 0 else "shorter"
        return Finding(
            "length_follows_reward",
            f"Answers became {longer} (from {before:.0f} to {after:.0f} tokens in the mean), and "
            f"{longer} ones score better: within groups length and score correlate with {r:+.2f} "
            f"(95 % interval {low:+.2f} to {high:+.2f}). Check that the grader does not reward "
            "length itself.",
            {
                "tokens_first": before,
                "tokens_now": after,
                "correlation": {"mean": r, "low": low, "high": high},
            },
        )


def within_groups(groups: list[list[Scored]]) -> Moments:
    """Length and score of each completion, less the means of its group."""
    rows: list[tuple[float, float]] = []
    for group in groups:
        length = sum(c.length for c in group) / len(group)
        score = sum(c.score for c in group) / len(group)
        rows += [(c.length - length, c.score - score) for c in group]
    return Moments.of(rows)


def correlation(within: Moments) -> float | None:
    """Of the two figures of ``within_groups``; ``None`` where one of them does not vary."""
    if not within.count:
        return None
    (xx, xy), (_, yy) = within.products
    if xx <= 0 or yy <= 0:
        return None
    return max(-1.0, min(1.0, xy / math.sqrt(xx * yy)))
