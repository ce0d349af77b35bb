"""Losses of preferences, computed by hand."""

import math

import pytest
import torch

from trainer.preference.losses import dpo, kto, kto_kl, orpo


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_dpo() -> None:
    output = dpo(double(2.0, -1.0), double(1.0, 1.0), beta=0.5)
    assert output.loss_B.tolist() == pytest.approx(
        [-math.log(sigmoid(0.5)), -math.log(sigmoid(-1.0))], abs=1e-15
    )
    assert output.preferred_B.tolist() == [1.0, -0.5]
    assert output.non_preferred_B.tolist() == [0.5, 0.5]


def test_orpo() -> None:
    """P = 1/2 has odds 1 and P = 1/5 odds 1/4, so their ratio is 4."""
    output = orpo(double(math.log(1 / 2)), double(math.log(1 / 5)), beta=0.1)
    expected = math.log(2) - 0.1 * math.log(4 / 5)
    assert output.loss_B.tolist() == pytest.approx([expected], abs=1e-15)


def test_kto() -> None:
    output = kto(double(3.0), double(-2.0), kl=1.0, beta=0.5)
    gain, avoided = sigmoid(0.5 * 2), sigmoid(0.5 * 3)
    assert output.loss_B.tolist() == pytest.approx([1 - (gain + avoided) / 2], abs=1e-15)


@pytest.mark.parametrize(
    ("mismatched", "kl"), [([1.0, 2.0], 1.5), ([-4.0, 1.0], 0.0), ([0.0], 0.0)]
)
def test_the_distance_of_kto_is_never_negative(mismatched: list[float], kl: float) -> None:
    assert kto_kl(mismatched) == kl


def test_a_certain_answer_keeps_orpo_finite() -> None:
    better = double(0.0).requires_grad_()
    output = orpo(better, double(-1.0), beta=0.1)
    output.loss_B.sum().backward()
    assert math.isfinite(output.loss_B.item())
    assert better.grad is not None and math.isfinite(better.grad.item())
