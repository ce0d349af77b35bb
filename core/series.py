"""Curves: every number in the metrics of a step has a name, and a point in the series of that name.

Names are paths with dots. An element of a list goes by its own `name`, so that
`{"scores": {"graders": [{"name": "exact", "train_reward_mean": 1.0}]}}` has the one name
`scores.graders.exact.train_reward_mean`. Text and lists of other things have none.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select
from sqlalchemy.orm import Session

from core.models import MetricPoint, MetricSeries

#: The series whose points are the steps themselves: it has one for each step that is in the series.
STEPS = ""


def numbers_in(data: dict[str, Any]) -> dict[str, float | None]:
    """Return every number in the metrics of a step by its name; null stays null."""
    found: dict[str, float | None] = {}
    for name, value in _leaves(data, ""):
        # Two graders may have one name (a child may be called as the whole): both are shown.
        unique, number = name, 2
        while unique in found:
            unique, number = f"{name}#{number}", number + 1
        found[unique] = value
    return found


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                rest = {key: each for key, each in inner.items() if key != "name"}
                yield from _leaves(rest, f"{path}.{inner['name']}")
    elif value is None or isinstance(value, int | float):
        yield path, None if value is None else float(value)


def record(session: Session, job_id: str, phase: str, step: int, data: dict[str, Any]) -> None:
    """Write the points of a step in place of those that it has, in the caller's transaction."""
    wanted = {STEPS: float(step), **numbers_in(data)}
    known = _series(session, job_id, phase)
    session.execute(
        delete(MetricPoint).where(
            MetricPoint.series_id.in_(known.values()), MetricPoint.step == step
        )
    )
    if fresh := [name for name in wanted if name not in known]:
        rows = [{"job_id": job_id, "phase": phase, "name": name} for name in fresh]
        session.execute(insert(MetricSeries), rows)
        known = _series(session, job_id, phase)
    points = [
        {"series_id": known[name], "step": step, "value": value} for name, value in wanted.items()
    ]
    session.execute(insert(MetricPoint), points)


def forget(session: Session, job_id: str, *phases: str, beyond: int | None = None) -> None:
    """Delete the points of a job's phases, or of all; with `beyond` only those of later steps."""
    conditions: list[ColumnElement[bool]] = [MetricSeries.job_id == job_id]
    if phases:
        conditions.append(MetricSeries.phase.in_(phases))
    series = select(MetricSeries.id).where(*conditions)
    later = [] if beyond is None else [MetricPoint.step > beyond]
    session.execute(delete(MetricPoint).where(MetricPoint.series_id.in_(series), *later))


def _series(session: Session, job_id: str, phase: str) -> dict[str, int]:
    query = select(MetricSeries.name, MetricSeries.id).where(
        MetricSeries.job_id == job_id, MetricSeries.phase == phase
    )
    return {row.name: row.id for row in session.execute(query)}
