"""Reward up while the independent grader stays flat."""

import random

import pytest

from trainer.watch.signs.independent import Independent, Scores


def rows(chance: float, seed: int, *, scale: float = 1.0) -> Scores:
    draw = random.Random(seed)
    return [scale * (draw.random() < chance) for _ in range(64)]


def test_a_gain_that_only_the_grader_sees_is_seen() -> None:
    sign = Independent()
    assert sign.validated(rows(0.2, 1), rows(0.2, 2, scale=10)) is None
    assert sign.validated(rows(0.8, 5), rows(0.2, 6, scale=10)) is None
    found = sign.validated(rows(0.8, 3), rows(0.2, 4, scale=10))
    assert found is not None and found.code == "monitor_stays_flat"
    assert found.data["reward_gain"]["low"] > 0 >= found.data["monitor_gain"]["low"]
    assert found.data["rows"] == 64


@pytest.mark.parametrize(("reward", "monitor"), [(0.8, 0.8), (0.2, 0.2), (0.2, 0.8), (0.05, 0.0)])
def test_other_changes_are_no_sign(reward: float, monitor: float) -> None:
    sign = Independent()
    sign.validated(rows(0.2, 1), rows(0.2, 2))
    for _ in range(3):
        assert sign.validated(rows(reward, 3), rows(monitor, 4)) is None


def test_once_may_be_chance() -> None:
    sign = Independent()
    sign.validated(rows(0.2, 1), rows(0.2, 2))
    for monitor in (0.2, 0.8, 0.2, 0.8):
        assert sign.validated(rows(0.8, 3), rows(monitor, 4)) is None


def test_rows_without_a_score_on_either_side_are_left_out() -> None:
    sign = Independent()
    low: Scores = [0.0] * 10
    sign.validated([*low, None], [*low, 1.0])
    sign.validated([*[1.0] * 10, 1.0], [*low, 1.0])
    found = sign.validated([*[1.0] * 10, 1.0], [*low, 1.0])
    assert found is not None and found.data["rows"] == 10


def test_few_rows_are_not_judged() -> None:
    sign = Independent()
    sign.validated([0.0] * 7, [0.0] * 7)
    for _ in range(3):
        assert sign.validated([1.0] * 7, [0.0] * 7) is None
