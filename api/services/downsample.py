"""Fewer points of a curve, with all of its extremes.

The steps are cut into buckets of equal width. Of each bucket stay its lowest and its highest point
and, where something was not measured, the first gap; the first and the last point of the curve stay
too. So no peak, no drop and no hole of a curve disappears, however few points are asked for.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

#: A step and what was measured there; None is a gap.
Point = tuple[int, float | None]

#: The fewest points that a curve can be asked for: both ends, and one bucket.
MIN_POINTS = 5
#: Points that stay of each bucket at most: lowest, highest, first gap.
_PER_BUCKET = 3


@dataclass
class Downsampler:
    """Takes points in the order of their steps, in memory bounded by `max_points`.

    `first` and `last` are the steps between which all points lie, `count` is how many may come:
    with no more than `max_points` all of them stay. NaN and infinities count as gaps.
    """

    first: int
    last: int
    count: int
    max_points: int
    steps: int = 0
    gaps: int = 0
    low: Point | None = None
    high: Point | None = None
    _kept: list[Point] = field(default_factory=list)
    _bucket: int = -1
    _ends: tuple[Point, Point] | None = None
    _bucket_low: Point | None = None
    _bucket_high: Point | None = None
    _bucket_gap: Point | None = None

    def __post_init__(self) -> None:
        buckets = max(1, (self.max_points - 2) // _PER_BUCKET)
        self._width = (self.last - self.first + 1) / buckets
        self._whole = self.count <= self.max_points

    def add_all(self, points: Iterable[Point]) -> None:
        """Take points."""
        for step, value in points:
            self._add(step, None if value is None or not math.isfinite(value) else value)

    def _add(self, step: int, value: float | None) -> None:
        point = (step, value)
        self.steps += 1
        self._ends = (self._ends[0] if self._ends else point, point)
        bucket = int((step - self.first) / self._width)
        if self._whole:
            self._kept.append(point)
        elif bucket != self._bucket:
            self._close()
            self._bucket = bucket
        if value is None:
            self.gaps += 1
            self._bucket_gap = self._bucket_gap or point
            return
        self._bucket_low = _lower(self._bucket_low, point)
        self._bucket_high = _higher(self._bucket_high, point)
        self.low, self.high = _lower(self.low, point), _higher(self.high, point)

    def _close(self) -> None:
        found = {self._bucket_low, self._bucket_high, self._bucket_gap} - {None}
        self._kept += sorted((each for each in found if each), key=lambda point: point[0])
        self._bucket_low = self._bucket_high = self._bucket_gap = None

    def points(self) -> list[Point]:
        """Return what stays, in order; call it once, when all points have come."""
        if self._ends is None or self._whole:
            return self._kept
        self._close()
        first, last = self._ends
        head = [] if self._kept[0] == first else [first]
        tail = [] if self._kept[-1] == last else [last]
        return [*head, *self._kept, *tail]


def _lower(best: Point | None, point: Point) -> Point:
    # Of equals the first one stays.
    return point if best is None or _value(point) < _value(best) else best


def _higher(best: Point | None, point: Point) -> Point:
    return point if best is None or _value(point) > _value(best) else best


def _value(point: Point) -> float:
    assert point[1] is not None
    return point[1]
