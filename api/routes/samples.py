"""/v1/fine_tuning/jobs/{id}/samples: what the model wrote, and what the grader made of it."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query

from api.pagination import After, Limit, clamp
from api.parts import PartsDep
from api.schemas.samples import (
    Outcome,
    SampleGroup,
    SampleInGroup,
    SampleObject,
    SamplePage,
    SampleSummary,
    Split,
    Spread,
    columns_of,
)
from api.services import samples
from api.services.sample_texts import MAX_SEARCHED, Texts, search
from api.tenant import TransactionsDep, get_job
from core.models import Sample

router = APIRouter(prefix="/v1/fine_tuning/jobs/{fine_tuning_job_id}/samples")

Number = Annotated[float | None, Query(allow_inf_nan=False)]
Count = Annotated[int | None, Query(ge=0)]


def _filters(
    step: Count = None,
    min_step: Count = None,
    max_step: Count = None,
    split: Split | None = None,
    group: Count = None,
    row: Count = None,
    min_reward: Number = None,
    max_reward: Number = None,
    outcome: Outcome | None = None,
    failure: Annotated[str | None, Query(description="A kind of failure, or 'any'.")] = None,
    grader: Annotated[str | None, Query(description="A grader of the job, by name.")] = None,
    min_score: Number = None,
    max_score: Number = None,
    truncated: bool | None = None,
) -> samples.Filters:
    return samples.Filters(**locals())


FiltersDep = Annotated[samples.Filters, Depends(_filters)]


@router.get("")
def list_samples(
    fine_tuning_job_id: str,
    parts: PartsDep,
    transactions: TransactionsDep,
    filters: FiltersDep,
    text: Annotated[str | None, Query(min_length=1, max_length=1000)] = None,
    order_by: Literal["step", "reward"] = "step",
    order: Literal["asc", "desc"] = "desc",
    after: After = None,
    limit: Limit = None,
) -> SamplePage:
    """List a job's samples, the newest step first."""
    place = samples.Order(by=order_by, descending=order == "desc", after=after)
    with transactions.begin() as tenant:
        job = get_job(fine_tuning_job_id, tenant)
        missing = samples.unindexed(tenant, job)
        if text is None:
            page = samples.list_samples(tenant, job, filters, place, limit=limit)
        else:
            page = samples.find(tenant, job, filters, place, limit=MAX_SEARCHED)
            keys = samples.files_of(tenant, list(page.rows))
    shown, has_more, searched = list(page.rows), page.has_more, None
    last = shown[-1] if shown else None
    if text is not None:
        most = clamp(limit, default=20, maximum=samples.MAX_SAMPLES)
        texts = Texts.of(parts.store, keys, shown)
        found = search(texts, shown, text, limit=most, more=page.has_more)
        shown, last, searched = found.samples, found.last, found.searched
        has_more = not searched.complete
    return SamplePage(
        data=[SampleSummary.of(row) for row in shown],
        has_more=has_more,
        first_id=shown[0].id if shown else "",
        last_id=shown[-1].id if shown else "",
        next_after=last.id if last is not None and has_more else None,
        searched=searched,
        waiting_steps=missing.get("waiting", 0),
        lost_steps=missing.get("lost", 0),
    )


@router.get("/{sample_id}")
def retrieve_sample(
    fine_tuning_job_id: str, sample_id: str, parts: PartsDep, transactions: TransactionsDep
) -> SampleObject:
    """Show one sample with its prompt, its tokens and what each grader did."""
    with transactions.begin() as tenant:
        sample = samples.get_sample(tenant, get_job(fine_tuning_job_id, tenant), sample_id)
        keys = samples.files_of(tenant, [sample])
    content = Texts.of(parts.store, keys, [sample]).get(sample)
    return SampleObject(
        **columns_of(sample),
        **_graded(content),
        messages=content["messages"],
        token_ids=content["token_ids"],
        logprobs=content["logprobs"],
    )


@router.get("/{sample_id}/group")
def retrieve_group(
    fine_tuning_job_id: str, sample_id: str, parts: PartsDep, transactions: TransactionsDep
) -> SampleGroup:
    """Show all completions of the sample's prompt in its step."""
    with transactions.begin() as tenant:
        sample = samples.get_sample(tenant, get_job(fine_tuning_job_id, tenant), sample_id)
        group = samples.group_of(tenant, sample)
        keys = samples.files_of(tenant, group)
    texts = Texts.of(parts.store, keys, group)
    return SampleGroup(
        fine_tuning_job_id=sample.job_id,
        step=sample.step,
        split=sample.split,
        group=sample.group,
        row=sample.row,
        messages=texts.get(sample)["messages"],
        rewards=_spread(group),
        samples=[SampleInGroup(**columns_of(each), **_graded(texts.get(each))) for each in group],
    )


def _graded(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "text": content["text"],
        "outcome_detail": content["outcome"],
        "grader_latency_s": content.get("grader_latency_s"),
        "traces": content.get("traces", []),
    }


def _spread(group: list[Sample]) -> Spread:
    rewards = [sample.reward for sample in group if sample.reward is not None]
    return Spread(
        scored=len(rewards),
        mean=sum(rewards) / len(rewards) if rewards else None,
        lowest=min(rewards, default=None),
        highest=max(rewards, default=None),
    )
