"""Guards end a job after several steps beyond a limit, with a reason of their own."""

from typing import Any

import pytest

from tests.trainer.hyperparameters import LIMITS
from trainer.errors import EntropyCollapse, KlRunaway
from trainer.spec import LimitsSpec
from trainer.watch.guards import PATIENCE, Breaches, Guards


def guards(**limits: Any) -> Guards:
    return Guards(LimitsSpec(**{**LIMITS, **limits}), Breaches())


def test_low_entropy_ends_the_job() -> None:
    made = guards(min_entropy=0.1)
    for step in range(1, PATIENCE):
        made.check(step, entropy=0.05, kl=None)
        assert made.breached
    with pytest.raises(EntropyCollapse, match=r"under min_entropy=0\.1 .* 0\.05 at step 3"):
        made.check(PATIENCE, entropy=0.05, kl=None)


def test_a_high_kl_ends_the_job() -> None:
    made = guards(max_kl=0.5)
    made.check(1, entropy=1.0, kl=0.6)
    made.check(2, entropy=1.0, kl=0.6)
    with pytest.raises(KlRunaway, match=r"above max_kl=0\.5 .* 0\.7 at step 3"):
        made.check(3, entropy=1.0, kl=0.7)


def test_a_single_outlier_does_not() -> None:
    made = guards(max_kl=0.5, min_entropy=0.1)
    for step, kl in enumerate([9.0, 9.0, 0.1] * 3):
        made.check(step, entropy=kl, kl=kl)
    assert not made.breached


def test_zeros_hold_nothing() -> None:
    made = guards()
    for step in range(2 * PATIENCE):
        made.check(step, entropy=0.0, kl=1e9)
    assert not made.breached


def test_steps_without_a_measurement_neither_count_nor_clear() -> None:
    made = guards(min_entropy=0.1)
    made.check(1, entropy=0.0, kl=None)
    made.check(2, entropy=0.0, kl=None)
    made.check(3, entropy=None, kl=None)
    with pytest.raises(EntropyCollapse):
        made.check(4, entropy=0.0, kl=None)
