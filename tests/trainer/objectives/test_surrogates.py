"""What becomes of the ratio, against hand-computed values."""

import math

import pytest
import torch

from tests.trainer.objectives.objectives import ALGORITHMS, batch, numbers, objective
from trainer.objectives.loss import LossOutput, policy_loss
from trainer.objectives.objective import Objective


def outcome(
    ratios: list[float], advantages: list[float], chosen: Objective
) -> tuple[LossOutput, list[float]]:
    """The loss of tokens with these ratios, each a completion, and its gradients."""
    old_logp_N = torch.full((len(ratios),), -1.0, dtype=torch.float64)
    logp_N = (old_logp_N + numbers(*ratios).log()).requires_grad_()
    tokens = batch(
        logp_N,
        numbers(*advantages),
        old_logp_N=old_logp_N,
        completion_N=torch.arange(len(ratios)),
    )
    output = policy_loss(tokens, chosen)
    output.loss.backward()
    assert logp_N.grad is not None
    return output, logp_N.grad.tolist()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_where_the_ratio_is_1_the_gradient_is_that_of_reinforce(algorithm: str) -> None:
    logp_N = numbers(-1.0, -2.0, -0.5).requires_grad_()
    advantage_N, weight_N = numbers(1.0, 1.0, -2.0), numbers(0.5, 0.5, 0.25)
    completion_N = torch.tensor([0, 0, 1])
    tokens = batch(logp_N, advantage_N, weight_N=weight_N, completion_N=completion_N)
    policy_loss(tokens, objective(algorithm)).loss.backward()
    want = -weight_N * advantage_N
    if algorithm == "rloo":
        # Each token of a completion moves the ratio of the whole.
        want = numbers(-1.0, -1.0, 0.5)
    torch.testing.assert_close(logp_N.grad, want)


def test_the_clip_takes_the_gradient_of_ratios_that_went_far_enough() -> None:
    ratios, advantages = [0.5, 0.5, 1.5, 1.5, 1.1], [1.0, -1.0, 1.0, -1.0, 1.0]
    output, gradients = outcome(ratios, advantages, objective("dapo", clip_high=0.28))
    assert output.loss.item() == pytest.approx(-0.5 + 0.8 - 1.28 + 1.5 - 1.1)
    assert gradients == pytest.approx([-0.5, 0.0, 0.0, 1.5, -1.1])
    assert output.clipped_low_N.tolist() == [False, True, False, False, False]
    assert output.clipped_high_N.tolist() == [False, False, True, False, False]


def test_the_dual_clip_bounds_what_a_negative_advantage_can_do() -> None:
    chosen = objective("grpo", dual_clip=3.0)
    output, gradients = outcome([5.0, 2.0, 5.0], [-1.0, -1.0, 1.0], chosen)
    assert output.loss.item() == pytest.approx(3.0 + 2.0 - 1.2)
    assert gradients == pytest.approx([0.0, 2.0, 0.0])
    assert output.clipped_high_N.tolist() == [True, False, True]


def test_cispo_caps_the_weight_and_keeps_every_gradient() -> None:
    output, gradients = outcome([9.0, 0.5], [1.0, -2.0], objective("cispo", cispo_weight_cap=5.0))
    assert output.loss.item() == pytest.approx(-5.0 * (-1.0 + math.log(9)) + (-1 + math.log(0.5)))
    assert gradients == pytest.approx([-5.0, 1.0])
    assert output.clipped_high_N.tolist() == [True, False]


def test_sapo_lets_the_gradient_fade() -> None:
    chosen = objective("sapo", sapo_temperature_positive=1.0, sapo_temperature_negative=2.0)
    output, gradients = outcome([1.0, 3.0, 3.0], [1.0, 1.0, -1.0], chosen)

    def gate(tau: float, ratio: float) -> float:
        return 4 / tau / (1 + math.exp(-tau * (ratio - 1)))

    assert output.loss.item() == pytest.approx(-gate(1, 1) - gate(1, 3) + gate(2, 3))
    slope = [4 * s * (1 - s) for s in (1 / (1 + math.exp(-2)), 1 / (1 + math.exp(-4)))]
    assert gradients == pytest.approx([-1.0, -3 * slope[0], 3 * slope[1]])
    assert not output.clipped_high_N.any() | output.clipped_low_N.any()


def test_ratios_of_sequences_are_those_of_all_their_tokens() -> None:
    old_logp_N, completion_N = numbers(-1.0, -1.0, -1.0), torch.tensor([0, 0, 1])
    tokens = batch(
        numbers(-0.7, -1.1, -1.5),
        numbers(1.0, 1.0, 1.0),
        old_logp_N=old_logp_N,
        completion_N=completion_N,
    )
    mean, whole = (policy_loss(tokens, objective(name)).ratio_N for name in ("gspo", "rloo"))
    assert mean.tolist() == pytest.approx([math.exp(0.1)] * 2 + [math.exp(-0.5)])
    assert whole.tolist() == pytest.approx([math.exp(0.2)] * 2 + [math.exp(-0.5)])
