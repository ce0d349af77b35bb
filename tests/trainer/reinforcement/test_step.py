"""What one reinforcement step leaves out, reports, and when it refuses to go on."""

import json
from typing import Any

import pytest
import torch

from graders.outcome import Outcome
from tests.trainer.reinforcement.learners import FAILED, hyperparameters, learner, ragged
from trainer.errors import Diverged, GraderFailures
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reinforcement.rollouts import Sampled
from trainer.reinforcement.step import Step, reinforcement_step
from trainer.reinforcement.update import Learner

COMPLETIONS = [[[1, 2], [3]], [[4, 5, 6], [7]]]


def step_of(
    policy: Policy,
    outcomes: list[list[Outcome | float]],
    *,
    student: Learner | None = None,
    cut: frozenset[int] = frozenset(),
    shift: float = 0.0,
    weights: int = 0,
    **changes: Any,
) -> Step:
    """One step over two groups of two."""
    values = {"group_size": 2, "batch_size": 2, "learning_rate": 1e-2, **changes}
    hp = hyperparameters(**values)
    groups = ragged(policy, completions=COMPLETIONS, outcomes=outcomes, cut=cut, shift=shift)
    sampled = Sampled([r for group in groups for r in group], 1.0, weights)
    student = student or learner(policy, hp)
    return reinforcement_step(student, sampled, hp, step=weights, failure_share_limit=0.5)


def _weights(policy: Policy) -> list[torch.Tensor]:
    return [m.detach().clone() for m in policy.masters.values()]


def _same(policy: Policy, before: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(_weights(policy), before, strict=True))


def test_groups_without_spread_are_left_out(tiny_policy: Policy) -> None:
    before = _weights(tiny_policy)
    step = step_of(tiny_policy, [[1.0, 1.0], [0.0, 0.0]])
    assert step.metrics["groups_without_spread"] == 2
    assert step.metrics["groups_all_right"] == step.metrics["groups_all_wrong"] == 1
    assert step.trained_tokens == step.metrics["updates"] == 0
    # What was not measured is no zero.
    assert step.metrics["entropy"] is step.metrics["mismatch_mean"] is None
    json.dumps(step.metrics, allow_nan=False)
    assert _same(tiny_policy, before)


def test_cut_completions_take_no_part(tiny_policy: Policy) -> None:
    step = step_of(tiny_policy, [[1.0, 0.0], [1.0, 0.0]], cut=frozenset({0}))
    assert step.advantages[:2] == [0.0, 0.0]
    assert step.advantages[2] > 0 > step.advantages[3]
    assert step.trained_tokens == 4


@pytest.mark.parametrize("algorithm", ["grpo", "gspo", "cispo", "reinforce++", "ppo"])
def test_the_better_completion_becomes_likelier(tiny_policy: Policy, algorithm: str) -> None:
    group = Group([40, 41, 42], COMPLETIONS[0])

    def preference() -> float:
        with torch.no_grad():
            logp, _ = tiny_policy.logprobs([group], temperature=1.0)
        return (logp[:2].sum() - logp[2]).item()

    hp = {"algorithm": algorithm, "max_steps": 3}
    student = learner(tiny_policy, hyperparameters(**hp))
    before = preference()
    for _ in range(3):
        step_of(tiny_policy, [[1.0, 0.0], [0.5, 0.5]], student=student, **hp)
    assert preference() > before + 0.1


def test_figures_of_a_step_are_finite_json(tiny_policy: Policy) -> None:
    changes = {"algorithm": "ppo", "kl_coefficient": 0.1, "kl_placement": "reward"}
    step = step_of(tiny_policy, [[1.0, 0.0], [0.0, 0.0]], shift=0.01, **changes)
    json.dumps(step.metrics, allow_nan=False)
    assert step.metrics["mismatch_mean"] == pytest.approx(0.01, rel=1e-3)
    assert step.metrics["correction_kept_share"] == 1.0
    assert step.metrics["correction_weight_mean"] == pytest.approx(0.99, abs=1e-3)
    assert step.metrics["kl_to_reference"] == pytest.approx(0.0, abs=1e-6)
    assert step.metrics["value_loss"] > 0 and step.metrics["critic_grad_norm"] > 0
    # Nothing was expected, so nothing of the scores' variance was foreseen.
    assert step.metrics["value_explained_variance"] == 0.0
    assert step.metrics["updates"] == 1
    assert step.metrics["staleness"] == 0


def test_staleness_is_that_of_the_samplers_weights(tiny_policy: Policy) -> None:
    hp = hyperparameters(group_size=2, batch_size=2)
    groups = ragged(tiny_policy, completions=COMPLETIONS, outcomes=[[1.0, 0.0], [0.0, 1.0]])
    sampled = Sampled([r for group in groups for r in group], 1.0, weights=4)
    student = learner(tiny_policy, hp)
    step = reinforcement_step(student, sampled, hp, step=5, failure_share_limit=0.5)
    assert step.metrics["staleness"] == 1


def test_what_was_sampled_again_is_kept_and_what_is_dull_left_out(tiny_policy: Policy) -> None:
    outcomes: list[list[Outcome | float]] = [[0.5, 0.5], [1.0, 0.0]]
    dull = step_of(tiny_policy, outcomes, algorithm="dapo", resample_rounds=0, learning_rate=1e-9)
    left = step_of(tiny_policy, outcomes, algorithm="dapo", resample_rounds=2, learning_rate=1e-9)
    assert len(left.rollouts) == len(left.advantages) == 4
    assert left.advantages == dull.advantages
    assert (dull.metrics["groups_left_out"], left.metrics["groups_left_out"]) == (0, 1)
    # The mean over tokens counts those of the group that teaches: 4 of 7.
    assert left.metrics["grad_norm"] == pytest.approx(7 / 4 * dull.metrics["grad_norm"], rel=1e-4)


def test_shaping_gives_no_group_a_spread(tiny_policy: Policy) -> None:
    changes = {"overlong_buffer_tokens": 8, "overlong_penalty": 1.0, "resample_rounds": 1}
    step = step_of(tiny_policy, [[0.5, 0.5], [1.0, 0.0]], algorithm="dapo", **changes)
    assert step.metrics["groups_without_spread"] == step.metrics["groups_left_out"] == 1
    assert step.advantages[:2] == [0.0, 0.0]
    assert step.metrics["reward_shaping_mean"] == pytest.approx(-(3 + 1) / 8 / 2)


def test_a_loss_that_is_not_finite_stops_the_step(tiny_policy: Policy) -> None:
    before = _weights(tiny_policy)
    with pytest.raises(Diverged, match="not finite"):
        step_of(tiny_policy, [[1.0, 0.0], [1.0, 0.0]], shift=float("nan"))
    assert _same(tiny_policy, before)


def test_failures_beyond_the_limit_stop_the_step(tiny_policy: Policy) -> None:
    with pytest.raises(GraderFailures, match=r"3 of 4 completions .* limit of 50%"):
        step_of(tiny_policy, [[FAILED, FAILED], [FAILED, 1.0]])
    step_of(tiny_policy, [[FAILED, FAILED], [0.0, 1.0]])
