"""The plateau stop ends where there is no sure gain, and not before."""

import random

import pytest

from trainer.watch.finding import Stop
from trainer.watch.plateau import Plateau, Validations, slope_interval

Rows = list[float | None]


def stops(
    history: list[Rows], *, window: int = 3, lower_is_better: bool = False
) -> tuple[list[int], Stop | None]:
    """Steps at which a plateau is seen, and the last one."""
    plateau, seen, last = Plateau(window, Validations()), [], None
    for index, rows in enumerate(history):
        found = plateau.add(10 * index, rows, lower_is_better=lower_is_better)
        if found is not None:
            seen.append(10 * index)
            last = found
    return seen, last


def solved(count: int, rows: int = 40) -> Rows:
    return [1.0] * count + [0.0] * (rows - count)


def test_rising_validations_go_on_and_equal_ones_end() -> None:
    seen, stop = stops([solved(n) for n in (4, 12, 20, 28, 28, 28)])
    assert seen == [50]
    assert stop is not None and stop.reason == "plateau"
    assert stop.data["steps"] == [30, 40, 50]
    assert stop.data["means"] == pytest.approx([0.7, 0.7, 0.7])
    assert stop.data["slope"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert "of steps 30 to 50, the reward changed by +0 per step" in stop.message


def test_a_gain_within_the_noise_is_no_sure_gain() -> None:
    draw = random.Random(0)
    rows = [[float(draw.random() < p) for _ in range(40)] for p in (0.5, 0.52, 0.5)]
    assert stops(rows)[0] == [20]


def test_falling_rewards_end_as_well() -> None:
    assert stops([solved(n) for n in (30, 20, 10)])[0] == [20]


def test_no_window_never_ends() -> None:
    assert stops([solved(5)] * 9, window=0)[0] == []


def test_nothing_ends_before_the_window_is_full() -> None:
    assert stops([solved(5)] * 5, window=5)[0] == [40]


def test_losses_are_better_when_lower() -> None:
    falling: list[Rows] = [[2.0], [1.5], [1.01], [0.5], [0.5], [0.5]]
    seen, stop = stops(falling, window=4, lower_is_better=True)
    assert seen == [40, 50]
    assert stop is not None and "the loss changed by" in stop.message


def test_losses_that_rise_end() -> None:
    assert stops([[1.0], [1.5], [2.0], [2.5]], window=4, lower_is_better=True)[0] == [30]


def test_few_rows_use_the_lines_own_interval() -> None:
    # By hand: slope 1, residuals ±(1/6, -1/3, 1/6), standard error sqrt(1/6 / 1 / 2), t = 12.706.
    slope = slope_interval(Validations([0, 1, 2], [[0.0], [0.5], [2.0]]))
    assert slope is not None
    reach = 12.706 * (1 / 6 / 2) ** 0.5
    assert slope == pytest.approx({"mean": 1.0, "low": 1 - reach, "high": 1 + reach})


def test_rows_without_a_figure_are_left_out() -> None:
    history = Validations([0, 1, 2], [[None, 1.0], [0.0, 2.0], [9.0, 3.0]])
    assert slope_interval(history) == pytest.approx({"mean": 1.0, "low": 1.0, "high": 1.0})
    assert slope_interval(Validations([0, 1, 2], [[None], [1.0], [2.0]])) is None


def test_a_second_look_at_the_same_step_replaces_the_first() -> None:
    kept = Validations()
    plateau = Plateau(3, kept)
    for step, reward in ((0, 0.0), (0, 5.0), (1, 6.0)):
        plateau.add(step, [reward], lower_is_better=False)
    assert (kept.steps, kept.rows) == ([0, 1], [[5.0], [6.0]])
