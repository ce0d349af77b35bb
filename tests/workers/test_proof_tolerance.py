"""How far a served model may be from the trained one."""

import pytest

from workers.proving.compare import TOLERANCE, Figures, judge, tolerance


def _served(difference: float) -> Figures:
    return Figures(1, 2, difference, difference, 1.0, True)


@pytest.mark.parametrize("apart", [None, 0.0, 0.5])
def test_an_adapter_trained_in_4_bits_may_be_as_far_as_the_trainer_measured(
    apart: float | None,
) -> None:
    export = {"differs_from_base": True, "mean_difference_unquantized": apart}
    limit = TOLERANCE + (apart or 0.0)
    assert tolerance(export) == limit
    assert judge(_served(limit), export) == ("proved", None)
    state, message = judge(_served(limit + 0.01), export)
    assert state == "failed" and message is not None
    assert f"(limit {limit:.2g})" in message
