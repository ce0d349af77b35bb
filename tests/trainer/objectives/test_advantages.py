"""Advantages against hand-computed values."""

import math

import pytest
import torch

from tests.trainer.objectives.objectives import numbers
from trainer.objectives.advantages import (
    STD_EPSILON,
    discounted_sums,
    gae,
    group_advantages,
    leave_one_out_advantages,
    whiten,
)


def test_group_advantages_are_centred_and_scaled_by_the_unbiased_deviation() -> None:
    got = group_advantages([1.0, 0.0, 0.0, 1.0], scale_by_std=True)
    std = math.sqrt(4 * 0.25 / 3)
    assert got == pytest.approx([0.5 / (std + STD_EPSILON) * s for s in (1, -1, -1, 1)])


def test_without_scaling_only_the_mean_is_subtracted() -> None:
    assert group_advantages([3.0, 0.0, 0.0], scale_by_std=False) == pytest.approx([2, -1, -1])


def test_leave_one_out_compares_with_the_mean_of_the_others() -> None:
    assert leave_one_out_advantages([3.0, 1.0, 0.5]) == pytest.approx([2.25, -0.75, -1.5])


def test_a_completion_without_a_score_takes_no_part() -> None:
    with_gap = group_advantages([1.0, None, 0.0], scale_by_std=True)
    without = group_advantages([1.0, 0.0], scale_by_std=True)
    assert with_gap[1] == 0.0
    assert [with_gap[0], with_gap[2]] == without
    assert leave_one_out_advantages([1.0, None, 0.0]) == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("scores", [[0.05] * 3, [None, 1.0], [], [None]])
def test_groups_without_spread_have_exactly_no_advantage(scores: list[float | None]) -> None:
    assert group_advantages(scores, scale_by_std=True) == [0.0] * len(scores)
    assert leave_one_out_advantages(scores) == [0.0] * len(scores)


@pytest.mark.parametrize("scores", [[math.nan, math.nan], [1.0, math.nan], [math.nan, 1.0, 1.0]])
def test_what_is_no_number_is_no_lack_of_spread(scores: list[float | None]) -> None:
    """It comes from a broken forward pass, which must show in the loss."""
    assert all(map(math.isnan, group_advantages(scores, scale_by_std=True)))
    assert any(map(math.isnan, leave_one_out_advantages(scores)))


def test_discounted_sums_run_backwards() -> None:
    assert discounted_sums(numbers(1.0, 0.0, 4.0), 0.5).tolist() == [2.0, 2.0, 4.0]
    assert discounted_sums(numbers(), 0.5).tolist() == []


def test_gae_is_the_discounted_sum_of_temporal_differences() -> None:
    got = gae(numbers(0.0, 0.0, 1.0), numbers(0.5, 0.25, 0.75), discount=0.5, gae_lambda=0.5)
    # The differences are 0.5·0.25 − 0.5, 0.5·0.75 − 0.25 and 1 − 0.75.
    assert got.tolist() == [-0.375 + 0.25 * (0.125 + 0.25 * 0.25), 0.125 + 0.25 * 0.25, 0.25]


def test_gae_without_a_look_ahead_is_the_next_difference_and_with_a_full_one_the_return() -> None:
    reward_N, value_N = numbers(0.5, 0.0, 1.0), numbers(0.5, 0.25, 0.75)
    short = gae(reward_N, value_N, discount=1.0, gae_lambda=0.0)
    full = gae(reward_N, value_N, discount=1.0, gae_lambda=1.0)
    assert short.tolist() == [0.25, 0.5, 0.25]
    torch.testing.assert_close(full + value_N, discounted_sums(reward_N, 1.0))


def test_whitening_shifts_and_scales_all_parts_together() -> None:
    first, second = whiten([numbers(1.0, 3.0), numbers(5.0)])
    std = math.sqrt(8 / 3 + 1e-8)
    assert first.tolist() == pytest.approx([-2 / std, 0.0])
    assert second.tolist() == pytest.approx([2 / std])


def test_whitening_of_equal_values_gives_exact_zeros() -> None:
    parts = whiten([numbers(0.1, 0.1), numbers(0.1)])
    assert [part.tolist() for part in parts] == [[0.0, 0.0], [0.0]]
    assert whiten([]) == []
