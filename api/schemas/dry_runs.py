"""Dry runs: the body that starts one, and the object that shows it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from api.schemas.common import ApiObject, RequestBody
from api.schemas.dry_run_report import DryRunReport
from api.schemas.jobs import JobError, Metadata, masked_method
from core.dry_runs import ROW_RANGE, SAMPLE_RANGE
from core.methods import Method
from core.models import Job

Auto = Literal["auto"]

#: Hyperparameters that may stand beside `grader`.
BESIDE = ("temperature", "max_completion_tokens")


class CreateDryRun(RequestBody):
    """The body of `POST /v1/fine_tuning/dry_runs`; `core.methods` knows the ranges of `BESIDE`."""

    model: Annotated[str, Field(min_length=1)]
    training_file: Annotated[str, Field(min_length=1)]
    validation_file: str | None = None
    grader: dict[str, Any] | None = None
    method: Method | None = None
    rows: Annotated[int | Auto, BeforeValidator(ROW_RANGE)] = "auto"
    samples_per_row: Annotated[int | Auto, BeforeValidator(SAMPLE_RANGE)] = "auto"
    temperature: Any = None
    max_completion_tokens: Any = None
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    metadata: Metadata = None


class DryRunProgress(BaseModel):
    """Completions sampled so far, of how many."""

    done: int
    total: int


class DryRunObject(ApiObject):
    """A dry run; times are unix seconds.

    `samples_file` is the id of a JSONL file with every completion, its score and what each grader
    did; download it with `GET /v1/files/{id}/content`.
    """

    object: Literal["fine_tuning.dry_run"] = "fine_tuning.dry_run"
    created_at: int
    finished_at: int | None
    status: Literal["validating_files", "queued", "running", "succeeded", "failed", "cancelled"]
    model: str
    training_file: str
    validation_file: str | None
    method: dict[str, Any]
    rows: int | Auto
    samples_per_row: int | Auto
    seed: int
    metadata: dict[str, str] | None
    error: JobError | None
    progress: DryRunProgress | None
    report: Annotated[DryRunReport | None, Field(description="Null until it has succeeded.")]
    samples_file: str | None

    @classmethod
    def of(cls, row: Job) -> "DryRunObject":
        """Show one database row."""
        plan = row.plan or {}
        progress = None
        if row.total_steps is not None:
            progress = DryRunProgress(done=row.step, total=row.total_steps)
        return cls.model_validate(
            {
                "id": row.id,
                "created_at": row.created_at,
                "finished_at": row.finished_at,
                "status": row.status,
                "model": row.init_from or row.model,
                "training_file": row.training_file,
                "validation_file": row.validation_file,
                "method": masked_method(row.method),
                "rows": plan.get("rows", "auto"),
                "samples_per_row": plan.get("samples_per_row", "auto"),
                "seed": row.seed,
                "metadata": row.meta,
                "error": row.error or None,
                "progress": progress,
                "report": row.report,
                "samples_file": next(iter(row.result_files), None),
            }
        )
