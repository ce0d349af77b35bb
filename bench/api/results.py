"""Curves over 100,000 steps and finding samples among 100,000, beside the database's own time."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import Engine, insert, select
from sqlalchemy.orm import Session

from api.services import metrics, samples
from api.services.samples import Filters, Order
from api.services.series_rows import Window
from api.tenancy import Tenant
from bench.api.world import LONG, World, postgres_world, sqlite_world
from bench.figures import Figure
from core.db import make_engine, session_factory
from core.models import Job, Metric, MetricPoint, MetricSeries
from core.series import STEPS

STEP_COUNT, POINTS, ROUNDS = 100_000, 500, 5
#: What is asked: a curve in this many times the driver's reading of its rows, a page in so many ms.
MAX_RATIO, MAX_PAGE_MS = 1.5, 500.0

_PAGES = {
    "newest": Filters(),
    "one row": Filters(row=77),
    "reward range": Filters(min_reward=0.35, max_reward=0.45),
    "a failure that never was": Filters(failure="formula_runtime"),
    "cut ones": Filters(truncated=True),
}


def measure() -> list[Figure]:
    """Measure on SQLite and on Postgres."""
    figures = []
    for name, world in (("SQLite", sqlite_world), ("Postgres", postgres_world)):
        with (
            tempfile.TemporaryDirectory(prefix="rft-bench-") as folder,
            world(Path(folder)) as made,
        ):
            figures += list(_figures(name, made))
    return figures


def _figures(database: str, world: World) -> Iterator[Figure]:
    engine = make_engine(world.database_url)
    _add_curve(engine)
    with session_factory(engine)() as session:
        job = session.get_one(Job, LONG)
        tenant = Tenant(session=session, project_id=job.project_id)
        phase = metrics.pick_phase(metrics.list_phases(tenant, job), "rl")
        window = Window(None, None, POINTS)
        curve = _ms(lambda: metrics.read(tenant, job, phase, ["loss"], window))
        floor = _ms(lambda: _read_points(session))
        limit = f"≤{MAX_RATIO}×"
        yield Figure(
            f"curve of {STEP_COUNT:,} steps, {database}",
            *(curve, floor, "ms", "reading its rows", limit),
            holds=curve <= MAX_RATIO * floor,
        )
        first = _ms(lambda: samples.list_samples(tenant, job, Filters(), _NEWEST, limit=20))
        for name, wanted in _PAGES.items():
            taken = _ms(lambda w=wanted: samples.list_samples(tenant, job, w, _NEWEST, limit=20))
            yield Figure(
                f"20 of 100,000 samples: {name}, {database}",
                *(taken, first, "ms", "the newest 20", f"≤{MAX_PAGE_MS:g} ms"),
                holds=taken <= MAX_PAGE_MS,
            )
    engine.dispose()


_NEWEST = Order(by="step", descending=True, after=None)


def _add_curve(engine: Engine) -> None:
    draws = random.Random(1)
    with session_factory(engine).begin() as session:
        for number, name in enumerate((STEPS, "loss"), 1):
            session.add(MetricSeries(id=number, job_id=LONG, phase="rl", name=name))
        session.flush()
        steps = range(1, STEP_COUNT + 1)
        rows = [{"job_id": LONG, "phase": "rl", "step": step, "data": {}} for step in steps]
        session.execute(insert(Metric), rows)
        points: list[dict[str, Any]] = [
            {"series_id": series, "step": step, "value": draws.random()}
            for step in steps
            for series in (1, 2)
        ]
        session.execute(insert(MetricPoint), points)


def _read_points(session: Session) -> None:
    query = select(MetricPoint.step, MetricPoint.value).where(MetricPoint.series_id == 2)
    session.execute(query).all()


def _ms(action: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - began))
    return median(times)
