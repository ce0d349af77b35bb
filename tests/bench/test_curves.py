"""Curves of learning: means, intervals, and how long a score takes."""

import numpy as np
import pytest

from bench.report.curves import Curve, Interval, bootstrap


def run(seed: int, rows_by_step: dict[int, list[float]], seconds: list[float]) -> dict[str, object]:
    """A kept run, as far as a curve reads it."""
    return {
        "task": "t",
        "side": "ours",
        "seed": seed,
        "order": {"steps": len(seconds), "seed": seed},
        "start": {},
        "steps": [{"seconds": each} for each in seconds],
        "scores": [
            {"step": step, "rows": rows, "greedy": seed * step / 10}
            for step, rows in rows_by_step.items()
        ],
    }


def two_runs() -> Curve:
    return Curve.of(
        [
            run(1, {0: [0, 0], 2: [0, 1], 3: [1, 1]}, [60, 60, 30]),
            run(2, {0: [0, 0], 2: [1, 1], 3: [1, 1]}, [120, 120, 90]),
        ]
    )


def test_curve_keeps_step_seed_and_row_apart() -> None:
    curve = two_runs()
    assert curve.scores.shape == (3, 2, 2)
    assert curve.scores[1].tolist() == [[0, 1], [1, 1]]
    assert curve.seeds == 2


def test_runs_of_different_orders_make_no_curve() -> None:
    runs = [run(1, {0: [0]}, [60]), run(2, {0: [0]}, [60, 60])]
    with pytest.raises(ValueError, match=r"t-ours-1, t-ours-2 had different orders"):
        Curve.of(runs)


def test_greedy_scores_are_means_over_seeds() -> None:
    assert two_runs().greedy == pytest.approx([0.0, 0.3, 0.45])


def test_minutes_are_those_until_the_step_and_mean_over_seeds() -> None:
    assert two_runs().minutes == [0.0, 3.0, 4.0]


def test_intervals_have_the_mean_over_seeds_and_rows() -> None:
    assert [each.mean for each in two_runs().intervals()] == [0.0, 0.75, 1.0]


def test_minutes_to_a_score_lie_between_scored_steps_in_proportion() -> None:
    curve = two_runs()
    assert curve.minutes_to(0.0) == 0.0
    assert curve.minutes_to(0.25) == pytest.approx(1.0)
    assert curve.minutes_to(0.875) == pytest.approx(3.5)


def test_a_score_that_is_never_reached_has_no_time() -> None:
    with pytest.raises(ValueError, match="never reached"):
        two_runs().minutes_to(1.1)


def test_interval_of_equal_scores_has_no_width() -> None:
    found = bootstrap(np.full((3, 8), 0.4))
    assert (found.mean, found.low, found.high) == pytest.approx((0.4, 0.4, 0.4))


def test_interval_is_as_wide_as_that_of_a_mean_over_rows() -> None:
    """Seeds that agree leave the rows: 1.96 standard errors to each side."""
    rows = np.tile([0.0, 1.0], 100)
    found = bootstrap(np.stack([rows, rows, rows]))
    error = 1.96 * 0.5 / np.sqrt(200)
    assert found.high - found.mean == pytest.approx(error, rel=0.08)
    assert found.mean - found.low == pytest.approx(error, rel=0.08)


def test_seeds_that_differ_widen_the_interval() -> None:
    rows = np.tile([0.0, 1.0], 100)
    agree = bootstrap(np.stack([rows, rows]))
    differ = bootstrap(np.stack([np.zeros(200), np.ones(200)]))
    assert differ.mean == agree.mean
    assert differ.high - differ.low > 5 * (agree.high - agree.low)


@pytest.mark.parametrize(
    ("other", "shared"), [((0.5, 0.7), True), ((0.3, 0.4), True), ((0.61, 0.7), False)]
)
def test_intervals_overlap_when_they_share_a_value(
    other: tuple[float, float], shared: bool
) -> None:
    first, second = Interval(0.5, 0.4, 0.6), Interval(sum(other) / 2, *other)
    assert first.overlaps(second) is shared
    assert second.overlaps(first) is shared
