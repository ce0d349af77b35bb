"""From scores to advantages of tokens, for each kind of objective."""

import math

import pytest
import torch

from tests.trainer.objectives.objectives import ALGORITHMS, numbers, objective
from trainer.objectives.advantages import gae, group_advantages, whiten
from trainer.objectives.credit import Credit, Judged, assign_credit


def values(credit: list[list[Credit]]) -> list[list[float]]:
    return [c.advantage_N.tolist() for group in credit for c in group]


def test_group_objectives_give_all_tokens_of_a_completion_one_advantage() -> None:
    groups = [[Judged(1.0, 2), Judged(0.0, 1)], [Judged(0.5, 3), Judged(None, 2)]]
    got = values(assign_credit(groups, objective("dr_grpo")))
    assert got == [[0.5, 0.5], [-0.5], [0.0, 0.0, 0.0], [0.0, 0.0]]
    scaled = values(assign_credit(groups, objective("grpo")))
    assert scaled[0] == group_advantages([1.0, 0.0], scale_by_std=True)[:1] * 2


def test_a_penalty_in_the_reward_is_taken_from_the_score_before_groups_are_compared() -> None:
    chosen = objective("rloo", kl_placement="reward", kl_estimator="k1", kl_coefficient=0.1)
    group = [Judged(1.0, 2, kl_N=numbers(2.0, -1.0)), Judged(1.0, 1, kl_N=numbers(0.0))]
    assert values(assign_credit([group], chosen)) == [
        pytest.approx([-0.1, -0.1]),
        pytest.approx([0.1]),
    ]


def test_reinforce_plus_plus_whitens_discounted_returns_over_the_step() -> None:
    chosen = objective(
        "reinforce++", kl_placement="reward", kl_estimator="k1", kl_coefficient=0.5, discount=0.5
    )
    groups = [
        [Judged(1.0, 2, kl_N=numbers(0.2, 0.4)), Judged(None, 2)],
        [Judged(-1.0, 1, kl_N=numbers(0.0))],
    ]
    # Rewards are −0.1 and 1 − 0.2 in the first completion, −1 in the last.
    returns = [-0.1 + 0.5 * 0.8, 0.8, -1.0]
    mean = sum(returns) / 3
    std = math.sqrt(sum((r - mean) ** 2 for r in returns) / 3 + 1e-8)
    white = [(r - mean) / std for r in returns]
    got = values(assign_credit(groups, chosen))
    assert got == [pytest.approx(white[:2]), [0.0, 0.0], pytest.approx(white[2:])]


def test_ppo_whitens_gae_and_asks_the_critic_for_returns() -> None:
    chosen = objective("ppo", discount=0.9, gae_lambda=0.8)
    first, second = numbers(0.3, 0.1), numbers(0.2)
    groups = [[Judged(1.0, 2, value_N=first), Judged(0.0, 1, value_N=second)]]
    raw = [
        gae(numbers(0.0, 1.0), first, discount=0.9, gae_lambda=0.8),
        gae(numbers(0.0), second, discount=0.9, gae_lambda=0.8),
    ]
    ((one, two),) = assign_credit(groups, chosen)
    for credit, white_N, raw_N, value_N in zip(
        (one, two), whiten(raw), raw, (first, second), strict=True
    ):
        torch.testing.assert_close(credit.advantage_N, white_N)
        torch.testing.assert_close(credit.return_N, raw_N + value_N)


def test_a_completion_that_takes_no_part_has_no_returns() -> None:
    group = [Judged(None, 2), Judged(1.0, 1, value_N=numbers(0.5)), Judged(1.0, 0)]
    ((first, second, empty),) = assign_credit([group], objective("ppo"))
    assert first.return_N is None
    assert second.return_N is not None
    assert len(empty.advantage_N) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_scores_teach_nothing_without_a_critic(algorithm: str) -> None:
    chosen = objective(algorithm)
    judged = Judged(0.1 + 0.2, 3, value_N=numbers(0.1, 0.2, 0.3) if chosen.has_critic else None)
    got = values(assign_credit([[judged] * 3] * 2, chosen))
    assert any(map(any, got)) == chosen.has_critic


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="needs values of the critic"):
        assign_credit([[Judged(1.0, 1)]], objective("ppo"))
    with pytest.raises(ValueError, match="needs the distances to the reference"):
        assign_credit(
            [[Judged(1.0, 1), Judged(0.0, 1)]],
            objective("rloo", kl_placement="reward", kl_coefficient=0.1),
        )
