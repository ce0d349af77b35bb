"""Curves of a job's metrics, downsampled while they are read.

Points come from narrow rows (`core.series`). The metrics of a phase that are not there, as those
written before these rows were, come out of the JSON of each step: the same numbers, read slower.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from api.schemas.metrics import CurvePoint, MetricPhase, MetricSeriesObject
from api.services import series_rows
from api.services.downsample import Downsampler, Point
from api.services.series_rows import Window
from api.tenancy import Tenant
from core.errors import InvalidRequest
from core.models import Job, Metric
from core.nearest import nearest
from core.series import STEPS, numbers_in

#: What is shown when no names are asked for, where the phase has it.
HEADLINES = (
    "train_mean_reward",
    "full_valid_mean_reward",
    "completion_tokens_mean",
    "truncated_share",
    "failures",
    "groups_without_spread",
    "loss",
    "entropy",
    "grad_norm",
    "mismatch_mean",
    "kl_to_reference",
    "train_loss",
    "train_mean_token_accuracy",
    "valid_mean_reward",
    "valid_loss",
    "full_valid_loss",
    "full_valid_mean_token_accuracy",
    "train_mean_reward_margin",
    "full_valid_reward_accuracy",
)
#: The most names in one request.
MAX_NAMES = 50
#: Steps whose JSON tells which names a phase has, where no rows do.
_LOOKED_AT = 200
#: Rows that are fetched at once.
_BATCH = 5000


def list_phases(tenant: Tenant, job: Job) -> list[MetricPhase]:
    """Return the phases that have metrics."""
    steps = func.count(), func.min(Metric.step), func.max(Metric.step)
    query = select(Metric.phase, *steps).where(Metric.job_id == job.id).group_by(Metric.phase)
    rows = tenant.session.execute(query.order_by(Metric.phase)).all()
    return [
        MetricPhase(phase=phase, steps=count, first_step=first, last_step=last)
        for phase, count, first, last in rows
    ]


def read(
    tenant: Tenant, job: Job, phase: MetricPhase, names: list[str], window: Window
) -> tuple[list[MetricSeriesObject], list[str]]:
    """Return the curves of `names`, or of the headlines, and all names there are.

    Raises `InvalidRequest` for names that the phase does not have. While it has no step yet, any
    name may come: its curve is empty.
    """
    rows = series_rows.of_phase(tenant.session, job, phase)
    known = sorted(set(rows) - {STEPS}) if rows else _names_in_json(tenant.session, job, phase)
    wanted = _split(names, known) or [name for name in HEADLINES if name in known]
    if phase.steps:
        _refuse_unknown(wanted, known, phase.phase)
    curves = [_curve(phase, window) for _ in wanted]
    if rows:
        for name, curve in zip(wanted, curves, strict=True):
            series_rows.fill(tenant.session, rows[name], curve, window)
    elif wanted:
        for step, values in _from_json(tenant.session, job, phase, wanted, window):
            for value, curve in zip(values, curves, strict=True):
                curve.add_all([(step, value)])
    return [_shown(*pair) for pair in zip(wanted, curves, strict=True)], known


def pick_phase(phases: Sequence[MetricPhase], name: str, *, own: str) -> MetricPhase:
    """Return the phase of this name, an empty one for a job without metrics of its `own` steps yet.

    Raises `InvalidRequest` for a phase that the job does not have.
    """
    found = next((phase for phase in phases if phase.phase == name), None)
    if found is not None:
        return found
    if name == own:
        return MetricPhase(phase=name, steps=0, first_step=0, last_step=0)
    listed = ", ".join(phase.phase for phase in phases) or "none yet"
    close = nearest(name, [phase.phase for phase in phases])
    hint = f"Did you mean '{close}'? " if close else ""
    raise InvalidRequest(
        f"This job has no metrics of phase '{name}'. {hint}It has: {listed}.", param="phase"
    )


def _split(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Read `names=a,b` and `names=a&names=b` alike; a name that is asked for twice counts once.

    The name of a grader, and so that of a metric, may itself have a comma.
    """
    given = [each for name in names for each in ([name] if name in known else name.split(","))]
    wanted = list(dict.fromkeys(filter(None, map(str.strip, given))))
    if len(wanted) > MAX_NAMES:
        raise InvalidRequest(
            f"{len(wanted)} names are more than the {MAX_NAMES} that one request may have; ask for"
            " the rest in another.",
            param="names",
        )
    return wanted


def _refuse_unknown(wanted: Iterable[str], known: Sequence[str], phase: str) -> None:
    unknown = [name for name in wanted if name not in known]
    if not unknown:
        return
    guesses = [
        f"'{name}'" + (f" (did you mean '{close}'?)" if (close := nearest(name, known)) else "")
        for name in unknown
    ]
    word = "metric" if len(unknown) == 1 else "metrics"
    raise InvalidRequest(
        f"Unknown {word} of phase '{phase}': {', '.join(guesses)}. 'available' in the answer"
        " without 'names' lists them all.",
        param="names",
        code="unknown_metric",
    )


def _curve(phase: MetricPhase, window: Window) -> Downsampler:
    first = max(phase.first_step, window.min_step or phase.first_step)
    last = min(phase.last_step, phase.last_step if window.max_step is None else window.max_step)
    # Steps count up one by one, but of a narrow window it is not known how many have metrics.
    count = min(phase.steps, max(0, last - first + 1))
    return Downsampler(
        first=first, last=max(first, last), count=count, max_points=window.max_points
    )


def _shown(name: str, curve: Downsampler) -> MetricSeriesObject:
    points = curve.points()
    return MetricSeriesObject(
        name=name,
        points=points,
        downsampled=len(points) < curve.steps,
        steps=curve.steps,
        gaps=curve.gaps,
        lowest=_point(curve.low),
        highest=_point(curve.high),
    )


def _point(point: Point | None) -> CurvePoint | None:
    if point is None or point[1] is None:
        return None
    return CurvePoint(step=point[0], value=point[1])


def _names_in_json(session: Session, job: Job, phase: MetricPhase) -> list[str]:
    """Return the names in the metrics of some steps, spread over the phase."""
    span = max(1, (phase.last_step - phase.first_step) // _LOOKED_AT)
    steps = range(phase.first_step, phase.last_step + 1, span)
    query = select(Metric.data).where(
        Metric.job_id == job.id,
        Metric.phase == phase.phase,
        Metric.step.in_([*steps, phase.last_step]),
    )
    return sorted({name for data in session.scalars(query) for name in numbers_in(data)})


def _from_json(
    session: Session, job: Job, phase: MetricPhase, names: list[str], window: Window
) -> Iterator[tuple[int, list[float | None]]]:
    """Yield each step with the values of `names`, of which only the parts named are fetched."""
    parts = sorted({name.partition(".")[0].partition("#")[0] for name in names})
    query: Select[Any] = select(Metric.step, *(Metric.data[part] for part in parts)).where(
        Metric.job_id == job.id, Metric.phase == phase.phase
    )
    if window.min_step is not None:
        query = query.where(Metric.step >= window.min_step)
    if window.max_step is not None:
        query = query.where(Metric.step <= window.max_step)
    rows = session.execute(query.order_by(Metric.step).execution_options(yield_per=_BATCH))
    for step, *values in rows:
        found = numbers_in(dict(zip(parts, values, strict=True)))
        yield step, [found.get(name) for name in names]
