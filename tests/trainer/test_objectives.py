"""Advantages and losses against hand-computed values."""

import math

import pytest
import torch

from trainer.objectives import STD_EPSILON, group_advantages, policy_loss, token_weight


def test_group_advantages_are_centred_and_scaled_by_the_unbiased_deviation() -> None:
    got = group_advantages([1.0, 0.0, 0.0, 1.0], scale_by_std=True)
    std = math.sqrt(4 * 0.25 / 3)
    assert got == pytest.approx([0.5 / (std + STD_EPSILON) * s for s in (1, -1, -1, 1)])


def test_dr_grpo_only_subtracts_the_mean() -> None:
    assert group_advantages([3.0, 0.0, 0.0], scale_by_std=False) == pytest.approx([2, -1, -1])


def test_a_completion_without_a_score_takes_no_part() -> None:
    with_gap = group_advantages([1.0, None, 0.0], scale_by_std=True)
    without = group_advantages([1.0, 0.0], scale_by_std=True)
    assert with_gap[1] == 0.0
    assert [with_gap[0], with_gap[2]] == without


@pytest.mark.parametrize("scores", [[0.1 + 0.2, 0.3 + 1e-17, 0.1 + 0.2], [None, 1.0], [], [None]])
def test_groups_without_spread_have_exactly_no_advantage(scores: list[float | None]) -> None:
    if scores and scores[0] is not None:
        scores = [scores[0]] * 3
    assert group_advantages(scores, scale_by_std=True) == [0.0] * len(scores)


def test_on_policy_gradient_is_that_of_reinforce() -> None:
    logp = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64, requires_grad=True)
    advantage = torch.tensor([1.0, 1.0, -2.0], dtype=torch.float64)
    weight = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    output = policy_loss(logp, logp.detach(), advantage, weight, importance_cap=2.0)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(-(0.5 + 0.25 - 0.5))
    torch.testing.assert_close(logp.grad, -weight * advantage)


def test_importance_weights_are_truncated_from_above_only() -> None:
    logp = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    sampler = torch.log(torch.tensor([0.25, 1.0, 4.0], dtype=torch.float64))
    ones = torch.ones(3, dtype=torch.float64)
    output = policy_loss(logp, sampler, ones, ones, importance_cap=2.0)
    assert output.importance.tolist() == pytest.approx([2.0, 1.0, 0.25])
    output.loss.backward()
    assert logp.grad is not None
    assert logp.grad.tolist() == pytest.approx([-2.0, -1.0, -0.25])


def test_kl_term_is_k3_with_its_gradient() -> None:
    logp = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-1.5], dtype=torch.float64)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    output = policy_loss(
        logp, logp.detach(), zero, one, importance_cap=2.0,
        reference_logp_N=reference, kl_coefficient=0.1,
    )  # fmt: skip
    x = -0.5
    assert output.loss.item() == pytest.approx(0.1 * (math.exp(x) - x - 1))
    output.loss.backward()
    assert logp.grad is not None
    assert logp.grad.item() == pytest.approx(0.1 * (1 - math.exp(x)))


def test_token_weights_sum_to_what_the_algorithm_says() -> None:
    lengths = [3, 5, 10]
    grpo = sum(n * token_weight("grpo", length=n, completions=3, max_length=16) for n in lengths)
    dr_grpo = sum(
        n * token_weight("dr_grpo", length=n, completions=3, max_length=16) for n in lengths
    )
    assert grpo == pytest.approx(1.0)
    assert dr_grpo == pytest.approx(18 / 48)
    with pytest.raises(ValueError, match="unknown algorithm 'ppo'"):
        token_weight("ppo", length=1, completions=1, max_length=1)
