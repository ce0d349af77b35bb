"""Finding samples by what their rows say; their texts are read by `api.services.sample_texts`."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm.attributes import InstrumentedAttribute

from api.pagination import Page, clamp, paginate
from api.tenancy import Tenant
from core.errors import InvalidRequest, NotFound
from core.methods import chosen
from core.models import Job, Rollout, Sample
from core.nearest import nearest
from graders.outcome import KINDS

#: The most samples in one page.
MAX_SAMPLES = 200
#: Stands for every kind of failure.
ANY_FAILURE = "any"

_PLACE: tuple[InstrumentedAttribute[Any], ...] = (Sample.step, Sample.split, Sample.position)


@dataclass(frozen=True)
class Filters:
    """What is wanted of samples; None where it does not matter."""

    step: int | None = None
    min_step: int | None = None
    max_step: int | None = None
    split: str | None = None
    group: int | None = None
    row: int | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    outcome: str | None = None
    failure: str | None = None
    grader: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    truncated: bool | None = None


@dataclass(frozen=True)
class Order:
    """In which order, and after which sample."""

    by: Literal["step", "reward"]
    descending: bool
    after: str | None


def list_samples(
    tenant: Tenant, job: Job, filters: Filters, order: Order, *, limit: int | None
) -> Page[Sample]:
    """Return a page of the job's samples; ordered by reward, only those that have one."""
    return find(tenant, job, filters, order, limit=clamp(limit, default=20, maximum=MAX_SAMPLES))


def find(tenant: Tenant, job: Job, filters: Filters, order: Order, *, limit: int) -> Page[Sample]:
    """Return the next `limit` samples that fit.

    Raises `InvalidRequest` for graders and kinds of failure that there are not.
    """
    samples = select(Sample).where(Sample.job_id == job.id)
    query = samples.where(*_conditions(job, filters))
    if order.by == "reward":
        query = query.where(Sample.reward.is_not(None))
    return paginate(
        tenant.session,
        query,
        order=(Sample.reward, *_PLACE) if order.by == "reward" else _PLACE,
        cursor=None if order.after is None else samples.where(Sample.id == order.after),
        limit=limit,
        descending=order.descending,
    )


def get_sample(tenant: Tenant, job: Job, sample_id: str) -> Sample:
    """Return one sample of the job; raises `NotFound`."""
    query = select(Sample).where(Sample.job_id == job.id, Sample.id == sample_id)
    sample = tenant.session.scalar(query)
    if sample is None:
        raise NotFound(
            f"No such sample: {sample_id}. GET /v1/fine_tuning/jobs/{job.id}/samples lists them;"
            " those of a step that was run again have new ids.",
            code="sample_not_found",
            param="sample_id",
        )
    return sample


def group_of(tenant: Tenant, sample: Sample) -> list[Sample]:
    """Return every completion of the sample's prompt in its step, in order."""
    query = select(Sample).where(
        Sample.job_id == sample.job_id,
        Sample.step == sample.step,
        Sample.split == sample.split,
        Sample.group == sample.group,
    )
    return list(tenant.session.scalars(query.order_by(Sample.position)))


def files_of(tenant: Tenant, samples: list[Sample]) -> dict[tuple[int, str], str]:
    """Return where the texts of samples of one job lie: step and split → object key."""
    if not samples:
        return {}
    query = select(Rollout.step, Rollout.split, Rollout.object_key).where(
        Rollout.job_id == samples[0].job_id, Rollout.step.in_({sample.step for sample in samples})
    )
    return {(step, split): key for step, split, key in tenant.session.execute(query)}


def unindexed(tenant: Tenant, job: Job) -> dict[str, int]:
    """Count the job's rollouts whose samples cannot be found, by their state."""
    query = (
        select(Rollout.index_state, func.count().label("steps"))
        .where(Rollout.job_id == job.id, Rollout.index_state != "indexed")
        .group_by(Rollout.index_state)
    )
    return {row.index_state: row.steps for row in tenant.session.execute(query)}


def _conditions(job: Job, wanted: Filters) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column, value in (
        (Sample.step, wanted.step),
        (Sample.split, wanted.split),
        (Sample.group, wanted.group),
        (Sample.row, wanted.row),
        (Sample.truncated, wanted.truncated),
    ):
        if value is not None:
            found.append(column == value)
    found += _between(Sample.step, wanted.min_step, wanted.max_step)
    found += _between(Sample.reward, wanted.min_reward, wanted.max_reward)
    if wanted.outcome == "score":
        found.append(Sample.reward.is_not(None))
    elif wanted.outcome is not None:
        abstained = wanted.outcome == "abstain"
        found.append(Sample.reward.is_(None))
        found.append(Sample.failure.is_(None) if abstained else Sample.failure.is_not(None))
    return [*found, *_failed(job, wanted), *_graded(job, wanted)]


def _between(column: Any, low: float | None, high: float | None) -> list[ColumnElement[bool]]:
    bounds = []
    if low is not None:
        bounds.append(column >= low)
    if high is not None:
        bounds.append(column <= high)
    return bounds


def _failed(job: Job, wanted: Filters) -> list[ColumnElement[bool]]:
    """What `failure` asks for, in the grader named where one is."""
    if wanted.failure is None:
        return []
    if wanted.failure == ANY_FAILURE:
        condition: ColumnElement[bool] = Sample.failure.is_not(None)
    else:
        _refuse_unknown(wanted.failure, [ANY_FAILURE, *KINDS], "failure", "kind of failure")
        condition = Sample.failure == wanted.failure
    if wanted.grader is None:
        return [condition]
    part = _part(job, wanted.grader)
    return [condition, Sample.failed_grader == (wanted.grader if part is None else part)]


def _graded(job: Job, wanted: Filters) -> list[ColumnElement[bool]]:
    """What is asked of a grader's own score; a grader alone asks that it gave one."""
    bounds = wanted.min_score is not None or wanted.max_score is not None
    if wanted.grader is None:
        if bounds:
            raise InvalidRequest(
                "'min_score' and 'max_score' are about one grader; name it in 'grader', or use"
                " 'min_reward' and 'max_reward'.",
                param="grader",
            )
        return []
    part = _part(job, wanted.grader)
    if wanted.failure is not None and not bounds:
        return []
    if part is None:
        return [
            Sample.reward.is_not(None),
            *_between(Sample.reward, wanted.min_score, wanted.max_score),
        ]
    # A key of a multi grader holds letters, digits and _, so it needs no quoting in a path.
    score = Sample.sub_scores[part].as_float()
    return [score.is_not(None), *_between(score, wanted.min_score, wanted.max_score)]


def _part(job: Job, name: str) -> str | None:
    """Return the key of a child of the job's multi grader, None for the whole grader.

    A child that is called as the whole goes by `name.name`. Raises `InvalidRequest`.
    """
    grader = chosen(job.method).get("grader")
    if grader is None:
        raise InvalidRequest(
            f"A job of method '{job.method['type']}' has no grader; leave 'grader' out.",
            param="grader",
        )
    whole, children = grader["name"], grader.get("graders") or {}
    parts = {(key if key != whole else f"{whole}.{key}"): key for key in children}
    _refuse_unknown(name, [whole, *parts], "grader", "grader of this job")
    return parts.get(name)


def _refuse_unknown(name: str, known: list[str], param: str, what: str) -> None:
    if name not in known:
        close = nearest(name, known)
        hint = f"Did you mean '{close}'?" if close else f"Known are {', '.join(known)}."
        raise InvalidRequest(f"'{name}' is no {what}. {hint}", param=param)
