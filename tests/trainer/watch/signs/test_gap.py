"""The gap between training and validation rows."""

import random

from tests.trainer.watch.signs.streams import scored
from trainer.watch.finding import Finding
from trainer.watch.signs.gap import Gap
from trainer.watch.signs.view import Scored


def groups(chance: float, seed: int) -> list[list[Scored]]:
    draw = random.Random(seed)
    return [[scored(float(draw.random() < chance)) for _ in range(8)] for _ in range(16)]


def rows(chance: float, seed: int) -> list[float | None]:
    draw = random.Random(seed)
    return [float(draw.random() < chance) for _ in range(64)]


def story(train: list[float], valid: list[float], *, base: float | None) -> Finding | None:
    """Five steps of each training chance, then a validation; the last thing that is said."""
    gap, seed = Gap(), 0
    if base is not None:
        assert gap.validated(rows(base, 99)) is None
    found = None
    for chance, validation in zip(train, valid, strict=True):
        for _ in range(5):
            seed += 1
            gap.step(groups(chance, seed))
        found = gap.validated(rows(validation, seed)) or found
    return found


def test_training_that_leaves_validation_behind_is_seen() -> None:
    found = story([0.3, 0.6, 0.9], [0.3, 0.3, 0.3], base=0.3)
    assert found is not None and found.code == "validation_lags"
    assert found.data["gap_growth"]["low"] > 0.1
    assert found.data["train_reward"] > found.data["valid_reward"] + 0.4


def test_both_rising_is_no_sign() -> None:
    assert story([0.3, 0.6, 0.9], [0.3, 0.6, 0.9], base=0.3) is None


def test_harder_validation_rows_are_no_sign() -> None:
    assert story([0.5, 0.6, 0.7], [0.2, 0.3, 0.4], base=0.2) is None
    assert story([0.5, 0.6, 0.7], [0.2, 0.3, 0.4], base=None) is None


def test_sampling_that_catches_up_with_greedy_answers_is_no_sign() -> None:
    assert story([0.3, 0.6, 0.9], [0.9, 0.9, 0.9], base=0.9) is None
