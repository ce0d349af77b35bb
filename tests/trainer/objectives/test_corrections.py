"""Weights for the sampler's numbers, against hand-computed values."""

import math
from typing import Any

import pytest
import torch

from tests.trainer.objectives.objectives import batch, numbers, objective
from trainer.objectives.corrections import correction_weights
from trainer.objectives.loss import policy_loss
from trainer.objectives.objective import Correction

#: Ratios π_old/μ of two completions: the first's product is 3, the second's 0.25.
RATIOS = numbers(2.0, 1.5, 0.5, 0.5)
COMPLETION_N = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("kind", "low", "high", "weights"),
    [
        ("none", 0.0, 1.0, [1.0, 1.0, 1.0, 1.0]),
        ("token_truncate", 0.0, 1.8, [1.8, 1.5, 0.5, 0.5]),
        ("token_truncate", 0.6, 1.8, [1.8, 1.5, 0.6, 0.6]),
        ("sequence_truncate", 0.0, 2.0, [2.0, 2.0, 0.25, 0.25]),
        ("token_mask", 0.0, 1.8, [0.0, 1.5, 0.5, 0.5]),
        ("sequence_mask", 0.0, 2.0, [0.0, 0.0, 0.25, 0.25]),
        ("icepop", 0.6, 5.0, [2.0, 1.5, 0.0, 0.0]),
        ("geometric_mask", 0.6, 2.0, [1.0, 1.0, 0.0, 0.0]),
        ("geometric_mask", 0.4, 1.5, [0.0, 0.0, 1.0, 1.0]),
    ],
)
def test_each_correction_cuts_or_drops(
    kind: Any, low: float, high: float, weights: list[float]
) -> None:
    sampler_logp_N = numbers(-1.0, -2.0, -3.0, -0.5)
    old_logp_N = sampler_logp_N + RATIOS.log()
    got = correction_weights(
        old_logp_N, sampler_logp_N, COMPLETION_N, Correction(kind, low=low, high=high)
    )
    assert got.weight_N.tolist() == pytest.approx(weights)
    assert got.kept_N.tolist() == [weight > 0 for weight in weights]


def test_geometric_means_do_not_grow_with_length() -> None:
    """A thousand tokens that each differ by 0.5 % are a product of 148, and a mean of 1.005."""
    completion_N = torch.zeros(1000, dtype=torch.int64)
    old_logp_N, sampler_logp_N = torch.zeros(1000), torch.full((1000,), -0.005)
    kept = {
        kind: correction_weights(
            old_logp_N, sampler_logp_N, completion_N, Correction(kind, low, high)
        ).kept_N.all()
        for kind, low, high in (("geometric_mask", 0.99, 1.01), ("sequence_mask", 0.0, 2.0))
    }
    assert kept == {"geometric_mask": True, "sequence_mask": False}


def test_the_weight_multiplies_the_policy_gradient_and_not_the_penalty() -> None:
    chosen = objective(
        "grpo",
        sampler_correction="token_mask",
        correction_high=2.0,
        kl_coefficient=0.1,
        kl_estimator="k2",
    )
    logp_N = numbers(-1.0, -1.0).requires_grad_()
    tokens = batch(
        logp_N,
        numbers(1.0, 1.0),
        sampler_logp_N=numbers(-1.0 - math.log(3.0), -1.0 - math.log(1.5)),
        reference_logp_N=numbers(-1.5, -1.0),
    )
    output = policy_loss(tokens, chosen)
    output.loss.backward()
    assert output.kept_N.tolist() == [False, True]
    assert logp_N.grad is not None
    assert logp_N.grad.tolist() == pytest.approx([0.1 * 0.5, -1.5])


def test_what_is_dropped_cannot_spoil_the_loss() -> None:
    """Where sampler and trainer are worlds apart, weights overflow and are dropped all the same."""
    chosen = objective("grpo", sampler_correction="sequence_mask", correction_high=2.0)
    logp_N = numbers(0.0, -1.0).requires_grad_()
    tokens = batch(
        logp_N,
        numbers(-1.0, 1.0),
        old_logp_N=numbers(-2000.0, -1.0),
        sampler_logp_N=numbers(-5000.0, -1.0),
        completion_N=torch.tensor([0, 1]),
    )
    output = policy_loss(tokens, chosen)
    output.loss.backward()
    assert output.kept_N.tolist() == [False, True]
    assert output.loss.item() == -1.0
    assert logp_N.grad is not None
    assert logp_N.grad.tolist() == [0.0, -1.0]
