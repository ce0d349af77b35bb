"""A look at the first groups before any step is taken: is there something to learn from?

The first step's own rollouts are looked at first; it then goes on with them, so a job whose groups
have spread pays nothing for the look. Only where spread is missing are the groups of further steps
sampled, with the policy as it is, up to ``PROBE_GROUPS``. They are not trained on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from trainer.errors import NoSpread
from trainer.limits import PROBE_GROUPS, REFUSE_SHARE
from trainer.reinforcement.rollouts import Sampled
from trainer.sampling import Rollout, check_failures
from trainer.spec import TrainSpec
from trainer.spread import Spread, groups_of, solved_at

#: Completions that a refusal shows.
EXAMPLES = 5


@dataclass(frozen=True)
class Probe:
    """What the look found.

    ``first`` is the first step's sample, to go on with, unless training is ``refused``.
    """

    first: Sampled
    groups: list[list[Rollout]]
    spread: Spread
    refused: bool

    def message(self, max_completion_tokens: int) -> str:
        """The finding as a sentence, with what to do where it is bad."""
        advice = self.spread.advice(max_completion_tokens=max_completion_tokens)
        parts = [self.spread.message, *(advice if self.spread.level != "good" else ())]
        return " ".join(parts)

    def refusal(self, max_completion_tokens: int) -> NoSpread:
        """The end of a job that is refused."""
        firsts = [group[0] for group in self.groups[:EXAMPLES]]
        return NoSpread(
            f"Stopped before the first step: {self.message(max_completion_tokens)} To train "
            "anyway, set method.reinforcement.allow_no_spread to true.",
            examples=[{"row": r.row.index, "text": r.text, "score": r.score} for r in firsts],
        )


def probe(spec: TrainSpec, sample: Callable[[int], Sampled]) -> Probe:
    """Look at the first groups of a job that has not taken a step.

    Args:
        sample: samples and grades the step of this number, from 0, and trains nothing.

    Raises:
        GraderFailures: too many completions could not be graded.
    """
    hp = spec.reinforcement.hyperparameters
    refusing = spec.reinforcement.spread_check == "refuse"
    enough = math.floor((1 - REFUSE_SHARE) * PROBE_GROUPS) + 1
    most = min(hp.max_steps, math.ceil(PROBE_GROUPS / hp.batch_size)) if refusing else 1
    first = sample(0)
    groups: list[list[Rollout]] = []
    for step in range(most):
        rollouts = (sample(step) if step else first).rollouts
        check_failures(rollouts, spec.reinforcement.failure_share_limit)
        groups += groups_of(rollouts, hp.group_size)
        spread = Spread.of(
            groups,
            solved_at=solved_at(spec.reinforcement.grader),
            mask_truncated=hp.mask_truncated,
        )
        if spread.with_spread >= enough:
            break
    hopeless = spread.level == "bad" and spread.total >= PROBE_GROUPS
    return Probe(first, groups, spread, refused=refusing and hopeless)
