"""The critic's loss against hand-computed values."""

import pytest
import torch

from tests.trainer.objectives.objectives import numbers
from trainer.objectives.critic import explained_variance, value_loss


def test_the_clip_takes_the_gradient_of_values_that_moved_far_enough() -> None:
    value_N = numbers(0.9, 0.9, 0.55, -0.2).requires_grad_()
    old_value_N, return_N = numbers(0.5, 0.5, 0.5, 0.5), numbers(0.6, 1.0, 1.0, 1.0)
    output = value_loss(value_N, old_value_N, return_N, numbers(1, 0.5, 1, 1), clip=0.2)
    # Values are held at 0.7, 0.7, 0.55 and 0.3; the larger error counts.
    want = 0.5 * (0.3**2 + 0.5 * 0.3**2 + 0.45**2 + 1.2**2)
    assert output.loss.item() == pytest.approx(want)
    assert output.clipped_N.tolist() == [False, True, False, False]
    output.loss.backward()
    assert value_N.grad is not None
    assert value_N.grad.tolist() == pytest.approx([0.3, 0.0, -0.45, -1.2])


def test_without_a_clip_it_is_half_the_squared_error() -> None:
    value_N = numbers(5.0, 0.0)
    output = value_loss(value_N, numbers(0.0, 0.0), numbers(1.0, 1.0), numbers(1, 0.5), clip=0)
    assert output.loss.item() == pytest.approx(0.5 * (16 + 0.5))
    assert not output.clipped_N.any()


def test_explained_variance_says_how_much_better_than_a_constant_the_critic_is() -> None:
    return_N = numbers(0.0, 1.0, 2.0)
    assert explained_variance(return_N + 3.0, return_N) == pytest.approx(1.0)
    assert explained_variance(numbers(1.0, 1.0, 1.0), return_N) == pytest.approx(0.0)
    assert explained_variance(-return_N, return_N) == pytest.approx(-3.0)
    assert explained_variance(return_N, torch.ones(3)) is None
    assert explained_variance(numbers(), numbers()) is None
