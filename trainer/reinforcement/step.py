"""The reinforcement step: what was sampled and graded is compared, and the policy updated."""

import time
from dataclasses import dataclass
from typing import Any

from trainer.evaluation import is_solved
from trainer.reinforcement.examples import Example, make_examples
from trainer.reinforcement.figures import update_metrics
from trainer.reinforcement.rollouts import Sampled, with_spread
from trainer.reinforcement.update import Learner
from trainer.sampling import Rollout, check_failures
from trainer.spec import Hyperparameters
from trainer.spread import groups_of


@dataclass(frozen=True)
class Step:
    """One step's rollouts, their advantages, and what the update measured.

    ``advantages`` has the mean over each rollout's tokens; 0 where it takes no part.
    """

    rollouts: list[Rollout]
    advantages: list[float]
    metrics: dict[str, Any]
    trained_tokens: int

    def add_time(self, *, waiting: float, sync: float, evaluation: float, whole: float) -> None:
        """Count the seconds that the step spent outside of sampling and training.

        Args:
            waiting: for the next step's rollouts, which were sampled beside the update.
            whole: all of the step, by the clock.
        """
        seconds = self.metrics["timing"]["step"]
        seconds.update(waiting=waiting, sync=sync, eval=evaluation, full_iteration=whole)


def reinforcement_step(
    learner: Learner,
    sampled: Sampled,
    hp: Hyperparameters,
    *,
    step: int,
    failure_share_limit: float,
) -> Step:
    """Compare the completions of a step, and update the policy.

    Args:
        sampled: what ``sample_step`` made for this step.
        step: counts from 0.

    Raises:
        GraderFailures: more than ``failure_share_limit`` of the completions could not be graded.
        WeightsMismatch, Diverged: see :meth:`Learner.learn`.
    """
    started = time.perf_counter()
    check_failures(sampled.rollouts, failure_share_limit)
    groups = groups_of(sampled.rollouts, hp.group_size)
    # Where groups without spread were sampled again, they are left out of every mean too.
    kept = with_spread(groups, hp) if hp.resample_rounds else groups
    examples = make_examples(kept, hp)
    measured = learner.learn(examples, step=step, staleness=step - sampled.weights)
    learned = {id(e.rollout): e for group in examples for e in group}
    training = time.perf_counter() - started
    timing = {
        "sampling": sampled.seconds,
        "training": training,
        "full_iteration": sampled.seconds + training,
    }
    metrics = {
        **update_metrics(measured, [e for group in examples for e in group], learner.objective),
        **_group_metrics(groups, kept, hp),
        "reward_shaping_mean": _shaping(list(learned.values())),
        "sampling_rounds": sampled.rounds,
        "timing": {"step": timing},
    }
    advantages = [learned[id(r)].advantage if id(r) in learned else 0.0 for r in sampled.rollouts]
    return Step(sampled.rollouts, advantages, metrics, measured.figures.tokens)


def _group_metrics(
    groups: list[list[Rollout]], kept: list[list[Rollout]], hp: Hyperparameters
) -> dict[str, Any]:
    solved = [[is_solved(r) for r in group] for group in groups]
    return {
        "groups": len(groups),
        "groups_left_out": len(groups) - len(kept),
        "groups_without_spread": len(groups) - len(with_spread(groups, hp)),
        "groups_all_right": sum(all(s) for s in solved),
        "groups_all_wrong": sum(not any(s) for s in solved),
    }


def _shaping(examples: list[Example]) -> float:
    """What shaping added to the scores, on average."""
    changes = [
        e.reward - e.rollout.score
        for e in examples
        if e.reward is not None and e.rollout.score is not None
    ]
    return sum(changes) / len(changes) if changes else 0.0
