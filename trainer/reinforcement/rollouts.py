"""The rollouts of one step: a group for each of its rows, and more in place of dull groups.

Every draw is fixed by the job's seed, the step and the round, so a step can be sampled early,
late or again.
"""

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.data import PromptRow, batch_for_step
from trainer.evaluation import FULL_MARKS
from trainer.rollout.base import Sampling
from trainer.sampling import Collector, Rollout
from trainer.spec import Hyperparameters
from trainer.spread import groups_of, kind_of


@dataclass(frozen=True)
class Sampled:
    """The graded rollouts of one step, group after group, in the order of sampling.

    ``seconds`` is what sampling and grading took, ``rounds`` how often rows were picked for it, and
    ``weights`` the number of steps that the sampler's weights had been trained for.
    """

    rollouts: list[Rollout]
    seconds: float
    weights: int
    rounds: int = 1


def sample_step(
    collector: Collector,
    rows: list[PromptRow],
    hp: Hyperparameters,
    *,
    step: int,
    seed: int,
    weights: int,
) -> Sampled:
    """Sample and grade a group for each row of one step.

    With ``resample_rounds``, groups without a spread of scores get others beside them until there
    are ``batch_size`` with spread (dynamic sampling, arXiv:2503.14476). Scores are compared as the
    grader gave them: a penalty for length would lend every group a spread. All that was sampled is
    returned.

    Args:
        step: counts from 0; together with ``seed`` it fixes rows and draws.
        weights: see :class:`Sampled`.
    """
    started = time.perf_counter()
    rollouts: list[Rollout] = []
    further = _further_rows(rows, step, hp.batch_size, seed)
    picked = batch_for_step(rows, step, hp.batch_size, seed)
    rounds = 0
    while picked and rounds <= hp.resample_rounds:
        draws = Sampling(hp.temperature, hp.max_completion_tokens, draw_seed(seed, step, rounds))
        repeated = [row for row in picked for _ in range(hp.group_size)]
        rollouts += collector.collect(repeated, draws, group_size=hp.group_size)
        rounds += 1
        missing = hp.batch_size - len(with_spread(groups_of(rollouts, hp.group_size), hp))
        picked = list(itertools.islice(further, missing))
    return Sampled(rollouts, time.perf_counter() - started, weights, rounds)


def with_spread(groups: list[list[Rollout]], hp: Hyperparameters) -> list[list[Rollout]]:
    """The groups whose raw scores differ."""
    return [
        group
        for group in groups
        if kind_of(group, FULL_MARKS, mask_truncated=hp.mask_truncated) == "spread"
    ]


def draw_seed(seed: int, step: int, sampling_round: int = 0) -> int:
    """The seed of a round's draws: far apart for neighbouring rounds, steps and jobs."""
    # Within what torch accepts.
    return (seed * 1_000_003 + step * 7_919 + sampling_round * 104_729 + 1) % 2**31


def _further_rows(
    rows: list[PromptRow], step: int, batch_size: int, seed: int
) -> Iterator[PromptRow]:
    """Rows in place of dull ones: first those that the step has not tried, then all again."""
    tried = {row.index for row in batch_for_step(rows, step, batch_size, seed)}
    order = list(rows)
    random.Random(f"{seed}:{step}:further").shuffle(order)
    fresh = [row for row in order if row.index not in tried]
    return itertools.cycle([*fresh, *(row for row in order if row.index in tried)])
