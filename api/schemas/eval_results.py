"""What OpenAI's clients read of a run: the run, its output items, and pages of either.

OpenAI's schemas leave no room for null: where nothing went wrong an `error` has an empty `code` and
`message`, and where nothing was sampled the texts of a sample are empty and its numbers 0.
"""

from typing import Any, Literal

from pydantic import BaseModel

from api.schemas.common import ApiObject
from core.models import EvalItem, EvalRun


class EvalError(BaseModel):
    """What went wrong; both are empty when nothing did."""

    code: str = ""
    message: str = ""


class ResultCounts(BaseModel):
    """Items by what became of them; `errored` ones could not be sampled or graded."""

    total: int = 0
    errored: int = 0
    failed: int = 0
    passed: int = 0


class PerModelUsage(BaseModel):
    """Tokens of one model, whether it was tested or a judge."""

    # `model_name` is OpenAI's, where pydantic keeps `model_` for itself.
    model_config = {"protected_namespaces": ()}

    model_name: str
    invocation_count: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int


class PerCriterion(BaseModel):
    """Items that passed and failed one criterion, by its id; `errored`, ours, are neither."""

    testing_criteria: str
    passed: int
    failed: int
    errored: int


class RunObject(ApiObject):
    """A run of an eval. `step` and `phase`, ours, say which evaluation of a job it keeps."""

    object: Literal["eval.run"] = "eval.run"
    eval_id: str
    status: str
    model: str
    name: str
    created_at: int
    finished_at: int | None
    report_url: str
    result_counts: ResultCounts
    per_model_usage: list[PerModelUsage]
    per_testing_criteria_results: list[PerCriterion]
    data_source: dict[str, Any]
    metadata: dict[str, str] | None
    error: EvalError
    phase: str | None
    step: int | None

    @classmethod
    def of(cls, row: EvalRun, *, base_url: str) -> "RunObject":
        """Show one database row; `base_url` is the API's own, for the link to the items."""
        return cls(
            id=row.id,
            eval_id=row.eval_id,
            status=row.status,
            model=row.model,
            name=row.name,
            created_at=row.created_at,
            finished_at=row.finished_at,
            report_url=f"{base_url}v1/evals/{row.eval_id}/runs/{row.id}/output_items",
            result_counts=ResultCounts.model_validate(row.result_counts),
            per_model_usage=[PerModelUsage.model_validate(each) for each in row.per_model_usage],
            per_testing_criteria_results=[
                PerCriterion.model_validate(each) for each in row.per_testing_criteria_results
            ],
            data_source=row.data_source,
            metadata=row.meta,
            error=EvalError.model_validate(row.error or {}),
            phase=row.phase,
            step=row.step,
        )


class SampleUsage(BaseModel):
    """Tokens of one sample."""

    total_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0


class ItemSample(BaseModel):
    """What the model read and wrote, and how it sampled; messages as in a chat request."""

    input: list[dict[str, Any]] = []
    output: list[dict[str, Any]] = []
    finish_reason: str = ""
    model: str = ""
    usage: SampleUsage = SampleUsage()
    error: EvalError = EvalError()
    temperature: float = 0
    top_p: float = 0
    max_completion_tokens: int = 0
    seed: int = 0


class CriterionResult(BaseModel):
    """The score of one criterion; `sample` is what a judge or code said."""

    name: str
    type: str
    score: float
    passed: bool
    sample: dict[str, Any] | None
    criterion_id: str


class CriterionError(BaseModel):
    """A criterion that has no score for an item, and why; `sample` as in a result."""

    name: str
    type: str
    sample: dict[str, Any] | None
    criterion_id: str
    code: str
    message: str


class OutputItemObject(ApiObject):
    """What a run found about one item.

    `status` is `pass`, `fail` or `error`. `results` has the criteria with a score, `errors`, ours,
    those without: a failed grading is never a score of 0.
    """

    object: Literal["eval.run.output_item"] = "eval.run.output_item"
    run_id: str
    eval_id: str
    created_at: int
    status: str
    datasource_item_id: int
    datasource_item: dict[str, Any]
    results: list[CriterionResult]
    errors: list[CriterionError]
    sample: ItemSample

    @classmethod
    def of(cls, row: EvalItem, *, eval_id: str) -> "OutputItemObject":
        """Show one database row."""
        named = [{**each, "criterion_id": each["id"]} for each in row.results]
        return cls(
            id=row.id,
            run_id=row.run_id,
            eval_id=eval_id,
            created_at=row.created_at,
            status=row.status,
            datasource_item_id=row.position,
            datasource_item=row.item,
            results=[
                CriterionResult.model_validate(each) for each in named if each["score"] is not None
            ],
            errors=[
                CriterionError.model_validate({**each, **each["error"]})
                for each in named
                if each["score"] is None
            ],
            sample=ItemSample.model_validate(row.sample or {}),
        )


class DeletedRun(BaseModel):
    """The answer to deleting a run."""

    object: Literal["eval.run.deleted"] = "eval.run.deleted"
    deleted: Literal[True] = True
    run_id: str
