"""Fine-tuning jobs: the body that creates one, and the objects OpenAI's clients read."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from api.schemas.common import ApiObject, RequestBody
from core.methods import Method, chosen
from core.models import Checkpoint, Event, Job
from graders.masking import masked

#: The hyperparameters that OpenAI shows (and once took) beside `method`.
TOP_LEVEL = ("batch_size", "learning_rate_multiplier", "n_epochs")

MAX_PAIRS, MAX_KEY, MAX_VALUE = 16, 64, 512


def _within_limits(metadata: dict[str, str] | None) -> dict[str, str] | None:
    pairs = metadata or {}
    if len(pairs) > MAX_PAIRS:
        raise ValueError(f"at most {MAX_PAIRS} pairs are kept, not {len(pairs)}")
    for key, value in pairs.items():
        if not 0 < len(key) <= MAX_KEY:
            raise ValueError(f"the key {key[:80]!r} must have 1 to {MAX_KEY} characters")
        if len(value) > MAX_VALUE:
            raise ValueError(f"the value of {key!r} must have at most {MAX_VALUE} characters")
    return metadata or None


#: Pairs that a caller attaches; an empty object counts as none.
Metadata = Annotated[dict[str, str] | None, AfterValidator(_within_limits)]


class TopLevelHyperparameters(RequestBody):
    """OpenAI's older place for three hyperparameters; `core.methods` knows their ranges."""

    batch_size: Any = None
    learning_rate_multiplier: Any = None
    n_epochs: Any = None


class CreateJob(RequestBody):
    """The body of `POST /v1/fine_tuning/jobs`."""

    model: Annotated[str, Field(min_length=1)]
    training_file: Annotated[str, Field(min_length=1)]
    validation_file: str | None = None
    method: Method | None = None
    hyperparameters: TopLevelHyperparameters | None = None
    # The suffix becomes part of the model's name, where ':' separates and '/' would split a URL.
    suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None = None
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    metadata: Metadata = None
    integrations: list[dict[str, Any]] | None = None


class JobError(BaseModel):
    """Why a job failed."""

    code: str
    message: str
    param: str | None


class JobObject(ApiObject):
    """A fine-tuning job; times are unix seconds."""

    object: Literal["fine_tuning.job"] = "fine_tuning.job"
    created_at: int
    finished_at: int | None
    estimated_finish: int | None
    model: str
    fine_tuned_model: str | None
    organization_id: str
    status: str
    error: JobError | None
    method: dict[str, Any]
    hyperparameters: dict[str, Any]
    training_file: str
    validation_file: str | None
    result_files: list[str]
    trained_tokens: int | None
    seed: int
    user_provided_suffix: str | None
    integrations: list[dict[str, Any]]
    metadata: dict[str, str] | None
    eval_id: str | None
    cloned_from: str | None

    @classmethod
    def of(cls, row: Job, *, organization_id: str) -> "JobObject":
        """Show one database row."""
        hyperparameters = chosen(row.method)["hyperparameters"]
        return cls(
            id=row.id,
            created_at=row.created_at,
            finished_at=row.finished_at,
            estimated_finish=row.estimated_finish,
            model=row.init_from or row.model,
            fine_tuned_model=row.fine_tuned_model,
            organization_id=organization_id,
            status=row.status,
            error=JobError.model_validate(row.error) if row.error else None,
            method=masked_method(row.method),
            hyperparameters={name: hyperparameters[name] for name in TOP_LEVEL},
            training_file=row.training_file,
            validation_file=row.validation_file,
            result_files=row.result_files,
            trained_tokens=row.trained_tokens,
            seed=row.seed,
            user_provided_suffix=row.suffix,
            integrations=row.integrations or [],
            metadata=row.meta,
            eval_id=row.eval_id,
            cloned_from=row.cloned_from,
        )


def masked_method(method: dict[str, Any]) -> dict[str, Any]:
    """Return a job's method as callers may see it: without the secrets of its graders."""
    block = chosen(method)
    graders = {
        name: masked(block[name]) for name in ("grader", "monitor_grader") if block.get(name)
    }
    return {**method, method["type"]: {**block, **graders}}


class EventObject(ApiObject):
    """One line of a job's history."""

    object: Literal["fine_tuning.job.event"] = "fine_tuning.job.event"
    created_at: int
    level: str
    message: str
    type: str
    data: dict[str, Any]

    @classmethod
    def of(cls, row: Event) -> "EventObject":
        """Show one database row."""
        return cls(
            id=row.id,
            created_at=row.created_at,
            level=row.level,
            message=row.message,
            type=row.type,
            data=row.data or {},
        )


class ProofEngine(BaseModel):
    """What loaded the weights: stock libraries in a process of their own."""

    name: str
    version: str
    peft: str | None
    dtype: str


class ServingEngine(BaseModel):
    """What computes chat answers, as the serving service names it."""

    name: str
    version: str | None


class ServingProof(BaseModel):
    """How the model that chat answers come from compares with the trained one, in nats per token.

    The serving service was asked for the log-probabilities of the same completions, from the model
    and from its base. `message` says what it waits for or why it failed; the figures are null until
    both have answered.
    """

    state: Literal["waiting", "proved", "failed"]
    message: str | None = None
    attempts: int = 0
    at: int | None = None
    engine: ServingEngine | None = None
    prompts: int | None = None
    tokens: int | None = None
    mean_difference: float | None = None
    max_difference: float | None = None
    tolerance: float | None = None
    mean_difference_to_base: float | None = None
    differs_from_base: bool | None = None


class ExportProof(BaseModel):
    """How the stored weights compare with the trained ones, in nats per token.

    They were loaded in a fresh process and gave log-probabilities for completions of some prompts:
    against the trainer's own, within `tolerance`, and against the base model's. An adapter that was
    trained on a base in 4 bits is `mean_difference_unquantized` from itself on the base as it is
    served; null for others. `serving` is the same for the server that answers users, null where it
    is not asked.
    """

    engine: ProofEngine
    proved_at: int
    prompts: int
    tokens: int
    max_difference: float
    mean_difference: float
    max_difference_to_base: float
    mean_difference_to_base: float
    trainer_difference_to_base: float
    tolerance: float
    differs_from_base: bool
    mean_difference_unquantized: float | None = None
    serving: ServingProof | None = None


class CheckpointObject(ApiObject):
    """A stored checkpoint, usable as a model under `fine_tuned_model_checkpoint`.

    `proof` is null for intermediate checkpoints; only what a job exports at its end is proved.
    """

    object: Literal["fine_tuning.job.checkpoint"] = "fine_tuning.job.checkpoint"
    created_at: int
    fine_tuned_model_checkpoint: str
    fine_tuning_job_id: str
    step_number: int
    metrics: dict[str, Any]
    proof: ExportProof | None

    @classmethod
    def of(cls, row: Checkpoint) -> "CheckpointObject":
        """Show one database row."""
        return cls(
            id=row.id,
            created_at=row.created_at,
            fine_tuned_model_checkpoint=row.name,
            fine_tuning_job_id=row.job_id,
            step_number=row.step,
            metrics=row.metrics,
            proof=ExportProof.model_validate(row.proof) if row.proof else None,
        )
