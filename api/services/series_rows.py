"""Curves out of the rows that hold one number each; long ones are reduced inside the database."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, select
from sqlalchemy.orm import Session

from api.schemas.metrics import MetricPhase
from api.services.downsample import Downsampler, Point
from core.models import Job, MetricPoint, MetricSeries
from core.series import STEPS

#: Rows that are fetched at once.
_BATCH = 5000


@dataclass(frozen=True)
class Window:
    """Which steps are asked for, and into how many points they go."""

    min_step: int | None
    max_step: int | None
    max_points: int


def of_phase(session: Session, job: Job, phase: MetricPhase) -> dict[str, int]:
    """Return the series of a phase by name; none unless every step of it has its points."""
    query = select(MetricSeries.name, MetricSeries.id).where(
        MetricSeries.job_id == job.id, MetricSeries.phase == phase.phase
    )
    found = {row.name: row.id for row in session.execute(query)}
    if STEPS not in found:
        return {}
    count = select(func.count()).where(MetricPoint.series_id == found[STEPS])
    return found if session.scalar(count) == phase.steps else {}


def fill(session: Session, series_id: int, curve: Downsampler, window: Window) -> None:
    """Put the points of a series into `curve`."""
    wanted = [MetricPoint.series_id == series_id]
    if window.min_step is not None:
        wanted.append(MetricPoint.step >= window.min_step)
    if window.max_step is not None:
        wanted.append(MetricPoint.step <= window.max_step)
    if curve.whole:
        curve.add_all(_points(session, wanted))
        return
    for bucket in session.execute(_buckets(curve, wanted)):
        curve.add_bucket(
            (bucket.low_step, bucket.low),
            (bucket.high_step, bucket.high),
            None if bucket.gap is None else (bucket.gap, None),
            steps=bucket.steps,
            gaps=bucket.steps - bucket.measured,
        )
    ends = [MetricPoint.step.asc(), MetricPoint.step.desc()]
    query = select(MetricPoint.step, MetricPoint.value).where(*wanted).limit(1)
    first, last = (session.execute(query.order_by(end)).first() for end in ends)
    if first is not None and last is not None:
        curve.set_ends((first.step, first.value), (last.step, last.value))


def _buckets(curve: Downsampler, wanted: list[ColumnElement[bool]]) -> Select[Any]:
    """Select each bucket's extremes, the first step of each, its first gap and its counts."""
    place = (MetricPoint.step - curve.first) * curve.buckets // curve.span
    value, step = MetricPoint.value, MetricPoint.step
    figures = (
        select(
            place.label("bucket"),
            func.min(value).label("low"),
            func.max(value).label("high"),
            func.count().label("steps"),
            func.count(value).label("measured"),
            func.min(case((value.is_(None), step))).label("gap"),
            func.min(step).label("first"),
            func.max(step).label("last"),
        )
        .where(*wanted)
        .group_by(place)
        .subquery()
    )
    # Joined by the range of steps, along the primary key: the other way round SQLite would read all
    # points anew for each bucket.
    inside = and_(step >= figures.c.first, step <= figures.c.last)
    return (
        select(
            *figures.c,
            func.min(case((value == figures.c.low, step))).label("low_step"),
            func.min(case((value == figures.c.high, step))).label("high_step"),
        )
        .select_from(figures)
        .join(MetricPoint, and_(inside, *wanted))
        .group_by(*figures.c)
        .order_by(figures.c.bucket)
    )


def _points(session: Session, wanted: list[ColumnElement[bool]]) -> Iterator[Point]:
    query = select(MetricPoint.step, MetricPoint.value).where(*wanted).order_by(MetricPoint.step)
    for batch in session.execute(query.execution_options(yield_per=_BATCH)).partitions():
        yield from batch
