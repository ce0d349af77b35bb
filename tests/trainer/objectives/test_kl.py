"""Estimators of the distance to the reference, and where their gradients lead."""

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from tests.trainer.objectives.objectives import batch, numbers, objective
from trainer.objectives.kl import kl_estimate, kl_loss
from trainer.objectives.loss import policy_loss

Estimator = Literal["k1", "k2", "k3"]


def test_estimates_are_those_of_the_formulas() -> None:
    logp_N, reference_logp_N = numbers(-1.0, -2.0), numbers(-1.5, -1.0)
    x = [-0.5, 1.0]
    want = {
        "k1": [-v for v in x],
        "k2": [v * v / 2 for v in x],
        "k3": [math.exp(v) - v - 1 for v in x],
    }
    for estimator in ("k1", "k2", "k3"):
        got = kl_estimate(logp_N, reference_logp_N, estimator)  # type: ignore[arg-type]
        assert got.tolist() == pytest.approx(want[estimator])


def test_far_below_the_reference_nothing_pushes_further_away() -> None:
    logp_N = numbers(-50.0).requires_grad_()
    kl_estimate(logp_N, numbers(-1.0), "k3").sum().backward()
    assert logp_N.grad is not None
    assert logp_N.grad.item() <= 0  # what is minimised falls as the probability rises, or rests


@pytest.mark.parametrize(
    ("estimator", "weighted", "leads_to"),
    [
        ("k1", True, "reverse"),
        ("k1", False, "nowhere"),
        ("k2", False, "reverse"),
        ("k3", True, "reverse"),
        ("k3", False, "forward"),
    ],
)
def test_expected_gradients_are_those_of_the_divergence_only_if_weighted_right(
    estimator: Estimator, weighted: bool, leads_to: str
) -> None:
    """Over all actions of a small policy, so that the expectation is exact."""
    theta = numbers(0.3, -0.2, 0.9).requires_grad_()
    reference = torch.softmax(numbers(0.0, 0.5, -0.5), 0)
    logp = torch.log_softmax(theta, 0)
    probability = logp.detach().exp()
    ratio = torch.exp(logp - logp.detach())
    penalty = kl_loss(logp, reference.log(), ratio, estimator=estimator, weighted=weighted)
    got = _gradient((probability * penalty).sum(), theta)
    divergences = {
        "reverse": (logp.exp() * (logp - reference.log())).sum(),
        "forward": (reference * (reference.log() - logp)).sum(),
        "nowhere": (theta * 0.0).sum(),
    }
    torch.testing.assert_close(got, _gradient(divergences[leads_to], theta))


@pytest.mark.parametrize(("estimator", "weighted"), [("k1", True), ("k2", False), ("k3", True)])
def test_jobs_weigh_each_estimator_so_that_it_leads_to_the_divergence(
    estimator: Estimator, weighted: bool
) -> None:
    assert objective("grpo", kl_estimator=estimator).kl.weighted is weighted


def test_the_penalty_joins_the_loss_with_its_coefficient() -> None:
    logp_N, reference_logp_N = numbers(-1.0).requires_grad_(), numbers(-1.5)
    tokens = batch(logp_N, numbers(0.0), reference_logp_N=reference_logp_N)
    output = policy_loss(tokens, objective("grpo", kl_coefficient=0.1))
    k3 = math.exp(-0.5) + 0.5 - 1
    assert output.loss.item() == pytest.approx(0.1 * k3)
    output.loss.backward()
    assert logp_N.grad is not None
    # The gradient of ratio times k3: that of k3, plus k3 itself.
    assert logp_N.grad.item() == pytest.approx(0.1 * (1 - math.exp(-0.5) + k3))


def test_in_the_reward_or_with_coefficient_0_it_is_reported_and_not_in_the_loss() -> None:
    for values in ({"kl_coefficient": 0.1, "kl_placement": "reward"}, {"kl_coefficient": 0.0}):
        tokens = batch(numbers(-1.0), numbers(0.0), reference_logp_N=numbers(-1.5))
        output = policy_loss(tokens, objective("grpo", kl_estimator="k1", **values))
        assert output.loss.item() == 0.0
        assert output.kl_N is not None
        assert output.kl_N.tolist() == pytest.approx([math.exp(-0.5) - 0.5])


def _gradient(value: Tensor, of: Tensor) -> Tensor:
    return torch.autograd.grad(value, of, retain_graph=True)[0]
