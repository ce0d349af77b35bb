"""What the signs look at: the scored completions of a step, group by group."""

from collections.abc import Sequence
from dataclasses import dataclass

from graders.outcome import Score
from trainer.sampling import Rollout


@dataclass(frozen=True)
class Scored:
    """A completion with a score that was not cut."""

    score: float
    length: int
    sub_scores: dict[str, float]


def scored_groups(groups: Sequence[Sequence[Rollout]]) -> list[list[Scored]]:
    """The groups without the completions that take no part, and without empty ones."""
    kept = [
        [
            Scored(r.outcome.value, len(r.completion.token_ids), dict(r.outcome.sub_scores))
            for r in group
            if isinstance(r.outcome, Score) and not r.completion.truncated
        ]
        for group in groups
    ]
    return [group for group in kept if group]
