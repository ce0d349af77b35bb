"""The learning rate rises, falls, and never leaves its range."""

import itertools

import pytest

from trainer.schedule import rate_share


def test_rises_to_the_full_rate_and_falls_to_a_tenth() -> None:
    shares = [rate_share(step, 20) for step in range(1, 21)]
    assert shares[:2] == [0.5, 1.0]
    assert shares[-1] == pytest.approx(0.1)
    assert all(later < earlier for earlier, later in itertools.pairwise(shares[1:]))


@pytest.mark.parametrize("total", [1, 2, 3])
def test_short_phases_begin_at_the_full_rate(total: int) -> None:
    assert rate_share(1, total) == 1.0
    assert rate_share(total, total) > 0
