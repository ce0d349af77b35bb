"""Samples: what a model wrote during training, and what the grader made of it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from api.schemas.common import ApiObject, ListPageWithIds
from core.models import Sample

Split = Literal["train", "valid"]
Outcome = Literal["score", "abstain", "failure"]


class SampleSummary(ApiObject):
    """One completion, without its whole text."""

    object: Literal["fine_tuning.job.sample"] = "fine_tuning.job.sample"
    fine_tuning_job_id: str
    step: int
    split: str
    position: int = Field(description="Line of the step's rollout file, from 0.")
    group: int = Field(description="Number of the prompt within the step, from 0.")
    row: int = Field(description="Row of the training or validation file, from 0.")
    outcome: Outcome
    reward: float | None
    advantage: float | None
    sub_scores: dict[str, float] | None
    failure: str | None = Field(
        description="Kind of failure; beside a reward, one that 'invalid_grade' stood in for."
    )
    failed_grader: str | None
    truncated: bool
    tokens: int
    preview: str = Field(description="The beginning of the text.")

    @classmethod
    def of(cls, row: Sample) -> "SampleSummary":
        """Show one database row."""
        return cls(**columns_of(row))


def columns_of(row: Sample) -> dict[str, Any]:
    """Return what a sample's database row shows of it."""
    lost: Outcome = "failure" if row.failure else "abstain"
    return {
        "id": row.id,
        "fine_tuning_job_id": row.job_id,
        "step": row.step,
        "split": row.split,
        "position": row.position,
        "group": row.group,
        "row": row.row,
        "outcome": "score" if row.reward is not None else lost,
        "reward": row.reward,
        "advantage": row.advantage,
        "sub_scores": row.sub_scores,
        "failure": row.failure,
        "failed_grader": row.failed_grader,
        "truncated": row.truncated,
        "tokens": row.tokens,
        "preview": row.preview,
    }


class Searched(BaseModel):
    """How far a search for text looked."""

    samples: int = Field(description="Samples that fit the other filters and were read.")
    files: int
    unreadable: int = Field(description="Samples whose text is no longer stored.")
    complete: bool = Field(description="Whether nothing is left to look at.")


class SamplePage(ListPageWithIds[SampleSummary]):
    """A page of samples.

    `next_after` is the cursor of the next page, null at the end: a search for text may have looked
    further than the last sample that it found. `waiting_steps` and `lost_steps` count the parts of
    steps whose samples cannot be found: a worker has yet to index them, or their file is damaged.
    """

    next_after: str | None
    searched: Searched | None
    waiting_steps: int
    lost_steps: int


class GradedText(BaseModel):
    """The text of a completion and everything that graders said about it."""

    text: str
    outcome_detail: dict[str, Any] = Field(
        description="Value with notes, or kind and detail of the failure, or why it abstained."
    )
    grader_latency_s: float | None
    traces: list[dict[str, Any]] = Field(description="What each grader did, in order.")


class SampleInGroup(SampleSummary, GradedText):
    """One completion of a prompt."""


class SampleObject(SampleSummary, GradedText):
    """One completion with its prompt and tokens."""

    messages: list[dict[str, Any]]
    token_ids: list[int]
    logprobs: list[float] = Field(description="The sampler's log-probability of each token.")


class Spread(BaseModel):
    """How the rewards of a group lie; null where no completion has one."""

    scored: int
    mean: float | None
    lowest: float | None
    highest: float | None


class SampleGroup(BaseModel):
    """All completions of one prompt in one step."""

    object: Literal["fine_tuning.job.sample_group"] = "fine_tuning.job.sample_group"
    fine_tuning_job_id: str
    step: int
    split: str
    group: int
    row: int
    messages: list[dict[str, Any]]
    rewards: Spread
    samples: list[SampleInGroup]
