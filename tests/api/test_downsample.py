"""Fewer points of a curve: no extreme and no gap is lost, in bounded memory."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.services.downsample import MIN_POINTS, Downsampler, Point
from tests.properties import property_test

values = st.none() | st.floats(width=32) | st.sampled_from([0.0, 1.0, -1.0])
curves = st.lists(st.tuples(st.integers(1, 5), values), min_size=1, max_size=300).map(
    lambda steps: list(
        zip(
            itertools.accumulate(gap for gap, _ in steps),
            (value for _, value in steps),
            strict=True,
        )
    )
)


def downsample(points: list[Point], most: int) -> tuple[Downsampler, list[Point]]:
    curve = Downsampler(first=points[0][0], last=points[-1][0], count=len(points), max_points=most)
    curve.add_all(points)
    return curve, curve.points()


def finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


@property_test
@given(curves, st.integers(MIN_POINTS, 60))
def test_every_bucket_keeps_its_extremes_and_its_gap(points: list[Point], most: int) -> None:
    curve, kept = downsample(points, most)
    clean = [(step, finite(value)) for step, value in points]
    assert len(kept) <= max(most, MIN_POINTS)
    assert [step for step, _ in kept] == sorted({step for step, _ in kept})
    assert set(kept) <= set(clean)
    assert (kept[0], kept[-1]) == (clean[0], clean[-1])
    if len(points) <= most:
        assert kept == clean
        return
    first, span = points[0][0], points[-1][0] - points[0][0] + 1
    buckets = max(1, (most - 2) // 3)
    by_bucket = itertools.groupby(clean, key=lambda p: (p[0] - first) * buckets // span)
    for _, bucket in by_bucket:
        steps = dict(bucket)
        shown = {step: value for step, value in kept if step in steps}
        measured = [value for value in steps.values() if value is not None]
        if measured:
            found = [value for value in shown.values() if value is not None]
            assert (min(found), max(found)) == (min(measured), max(measured))
        assert (None in steps.values()) == (None in shown.values())
    assert curve.gaps == sum(value is None for _, value in clean)


@property_test
@given(curves)
def test_the_extremes_of_the_whole_curve_are_told(points: list[Point]) -> None:
    curve, _ = downsample(points, MIN_POINTS)
    measured = [each for _, value in points if (each := finite(value)) is not None]
    lows = None if curve.low is None else curve.low[1]
    highs = None if curve.high is None else curve.high[1]
    assert (lows, highs) == (min(measured, default=None), max(measured, default=None))


@pytest.mark.parametrize("peak", [1, 777, 20_000])
def test_one_peak_among_many_steps_stays(peak: int) -> None:
    points: list[Point] = [(step, 9.0 if step == peak else 0.5) for step in range(1, 20_001)]
    curve, kept = downsample(points, 100)
    assert (peak, 9.0) in kept and len(kept) <= 100
    assert curve.steps == 20_000


def test_nan_and_infinity_are_gaps() -> None:
    curve, kept = downsample([(1, math.nan), (2, math.inf), (3, 2.0)], 10)
    assert kept == [(1, None), (2, None), (3, 2.0)]
    assert curve.gaps == 2


def test_nothing_gives_nothing() -> None:
    assert Downsampler(first=0, last=0, count=0, max_points=10).points() == []
