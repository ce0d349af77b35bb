"""Passes and updates compute with what the job asked for."""

import functools
from typing import Any

import pytest
import torch

from tests.trainer.reinforcement.learners import Gradients, hyperparameters, learner, ragged
from trainer.policy import Policy
from trainer.reinforcement.critic import make_critic
from trainer.reinforcement.examples import make_examples
from trainer.reinforcement.figures import Measured

DULL: list[list[Any]] = [[0.5] * 3] * 4


def test_every_pass_divides_by_the_temperature(tiny_policy: Policy) -> None:
    hp = hyperparameters(temperature=0.5, minibatches=2, kl_coefficient=0.1)
    Gradients(tiny_policy)
    examples = make_examples(ragged(tiny_policy, temperature=0.5), hp)
    measured = learner(tiny_policy, hp).learn(examples, step=0)
    # The sampler, the first pass, those that look ahead and the reference are of the same weights.
    assert measured.updates == 2
    assert measured.mismatch_max < 1e-4
    assert measured.figures.kl == pytest.approx(0.0, abs=1e-6)
    assert measured.figures.ratio_max == pytest.approx(1.0, abs=1e-4)


def test_the_penalty_in_the_loss_pulls_back_where_scores_are_the_same(tiny_policy: Policy) -> None:
    reference = tiny_policy.reference()
    with torch.no_grad():
        for parameter in reference.model.parameters():
            parameter.mul_(1.5)
    hp = hyperparameters(kl_coefficient=1.0, kl_estimator="k2", learning_rate=3e-3)
    student = learner(tiny_policy, hp, reference=reference, max_mismatch=10.0)
    groups = ragged(tiny_policy, outcomes=DULL)
    distances = [
        student.learn(make_examples(groups, hp), step=step).figures.kl for step in range(6)
    ]
    assert distances[-1] < 0.8 * distances[0]


@pytest.mark.parametrize(("value_clip", "held"), [(0.01, True), (0.0, False)])
def test_a_value_moves_no_further_than_its_clip(
    tiny_policy: Policy, value_clip: float, held: bool
) -> None:
    changes = {"value_clip": value_clip, "rollout_epochs": 3, "critic_learning_rate": 3e-2}
    hp = hyperparameters(algorithm="ppo", **changes)
    Gradients(tiny_policy)
    measured = learner(tiny_policy, hp).learn(make_examples(ragged(tiny_policy), hp), step=9)
    assert (measured.figures.value_clipped > 0) is held


def test_both_learning_rates_follow_the_schedule(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = hyperparameters(algorithm="ppo", learning_rate=3e-3, critic_learning_rate=6e-3)
    critic = make_critic(tiny_policy)
    student = learner(tiny_policy, hp, critic=critic)
    rates: dict[str, list[float]] = {"policy": [], "critic": []}

    def keep(name: str, rate: float) -> float:
        rates[name].append(rate)
        return 1.0

    monkeypatch.setattr(tiny_policy, "update", functools.partial(keep, "policy"))
    monkeypatch.setattr(critic, "update", functools.partial(keep, "critic"))
    seen: list[Measured] = [
        student.learn(make_examples(ragged(tiny_policy), hp), step=step) for step in (0, 1, 2, 9)
    ]
    shares = [1 / 3, 2 / 3, 1.0, 0.1]
    assert rates["policy"] == pytest.approx([3e-3 * share for share in shares])
    assert rates["critic"] == pytest.approx([6e-3 * share for share in shares])
    assert [each.learning_rate for each in seen] == rates["policy"]
