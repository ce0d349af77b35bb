"""Bootstrapped intervals."""

import random

import pytest

from trainer import statistics
from trainer.statistics import interval, paired_gain


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(100):
        draw = random.Random(seed)
        figures = interval([draw.gauss(5.0, 2.0) for _ in range(60)])
        covered += figures["low"] <= 5.0 <= figures["high"]
    assert 88 <= covered <= 99


def test_the_memory_that_it_may_take_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [random.Random(i).random() for i in range(77)]
    whole = interval(values)
    monkeypatch.setattr(statistics, "DRAWN_AT_ONCE", 1_000)
    assert interval(values) == whole


def test_nothing_has_no_interval_and_gains_are_row_by_row() -> None:
    assert interval([]) == {"mean": None, "low": None, "high": None}
    assert paired_gain([0.0, 1.0], [1.0, 2.0]) == {"mean": 1.0, "low": 1.0, "high": 1.0}
