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
    """Takes points in the order of their steps; holds `max_points` and one bucket of them.

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
    _ends: tuple[Point, Point] | None = None
    #: The points of the open bucket, and the step at which the next bucket begins.
    _steps: list[int] = field(default_factory=list)
    _values: list[float | None] = field(default_factory=list)
    _edge: float = -math.inf

    def __post_init__(self) -> None:
        self.whole = self.count <= self.max_points
        #: Step s lies in bucket (s - first) * buckets // span, in whole numbers.
        self.buckets = max(1, (self.max_points - 2) // _PER_BUCKET)
        self.span = self.last - self.first + 1

    def add_all(self, points: Iterable[Point]) -> None:
        """Take points."""
        # Nothing but appending happens for each point: there may be a hundred thousand.
        for step, value in points:
            if step >= self._edge:
                self._close()
                self._edge = self._edge_after(step)
            self._steps.append(step)
            self._values.append(value)

    def _edge_after(self, step: int) -> int:
        """Return the first step of the next bucket."""
        bucket = (step - self.first) * self.buckets // self.span
        return self.first - (-(bucket + 1) * self.span) // self.buckets

    def _close(self) -> None:
        """Take over what stays of the open bucket, and empty it."""
        if not self._steps:
            return
        steps = self._steps
        values = [None if v is None or not math.isfinite(v) else v for v in self._values]
        measured = [value for value in values if value is not None]
        self.steps += len(steps)
        self.gaps += len(values) - len(measured)
        first, last = (steps[0], values[0]), (steps[-1], values[-1])
        self._ends = (self._ends[0] if self._ends else first, last)
        stay: set[int] = set(range(len(steps))) if self.whole else set()
        if measured:
            # Of equals the first one stays.
            low, high = values.index(min(measured)), values.index(max(measured))
            stay |= {low, high}
            self.low = _better(self.low, (steps[low], values[low]), sign=1)
            self.high = _better(self.high, (steps[high], values[high]), sign=-1)
        if len(measured) < len(values):
            stay.add(values.index(None))
        self._kept += [(steps[index], values[index]) for index in sorted(stay)]
        self._steps, self._values = [], []

    def add_bucket(
        self, low: Point, high: Point, gap: Point | None, *, steps: int, gaps: int
    ) -> None:
        """Take a whole bucket of which somebody else has found the extremes and the first gap.

        `low` and `high` have no value where nothing was measured.
        """
        self.steps += steps
        self.gaps += gaps
        measured = [point for point in (low, high) if point[1] is not None]
        for point in measured:
            self.low = _better(self.low, point, sign=1)
            self.high = _better(self.high, point, sign=-1)
        self._kept += sorted({*measured, *([gap] if gap else [])}, key=lambda point: point[0])

    def set_ends(self, first: Point, last: Point) -> None:
        """Say which points begin and end the curve, where whole buckets were taken."""
        self._ends = (first, last)

    def points(self) -> list[Point]:
        """Return what stays, in order; call it once, when all points have come."""
        self._close()
        if self._ends is None or self.whole:
            return self._kept
        first, last = self._ends
        head = [] if self._kept[0] == first else [first]
        tail = [] if self._kept[-1] == last else [last]
        return [*head, *self._kept, *tail]


def _better(best: Point | None, point: Point, *, sign: int) -> Point:
    """Return the lower of two points, or with `sign` -1 the higher; of equals the first."""
    assert point[1] is not None
    if best is None or best[1] is None:
        return point
    return point if sign * point[1] < sign * best[1] else best
