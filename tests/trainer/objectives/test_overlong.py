"""The penalty before the longest completion."""

import pytest

from trainer.objectives.overlong import overlong_penalty


@pytest.mark.parametrize(
    ("length", "want"), [(1, 0.0), (80, 0.0), (85, -0.5), (90, -1.0), (100, -2.0), (101, -2.0)]
)
def test_the_penalty_grows_over_the_buffer(length: int, want: float) -> None:
    assert overlong_penalty(length, max_length=100, buffer=20, penalty=2.0) == want


def test_without_a_buffer_there_is_none() -> None:
    assert overlong_penalty(100, max_length=100, buffer=0, penalty=1.0) == 0.0
