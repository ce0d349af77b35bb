"""The learning rate rises, falls, and never leaves its range."""

import itertools

import pytest

from trainer.schedule import rate_share


def test_rises_over_ten_updates_and_falls_to_a_tenth() -> None:
    shares = [rate_share(step, 40) for step in range(1, 41)]
    assert shares[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert shares[-1] == pytest.approx(0.1)
    assert all(later < earlier for earlier, later in itertools.pairwise(shares[9:]))


@pytest.mark.parametrize("total", range(1, 12))
def test_short_phases_reach_the_full_rate_too(total: int) -> None:
    shares = [rate_share(step, total) for step in range(1, total + 1)]
    assert max(shares) == 1.0
    assert min(shares) > 0.099
