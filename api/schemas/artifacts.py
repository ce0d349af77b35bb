"""Files of a checkpoint's weights."""

from typing import Literal

from pydantic import BaseModel, Field

from api.schemas.common import ApiObject, ListPage

Form = Literal["adapter", "full", "merged"]


class ArtifactObject(ApiObject):
    """One file of weights, tokenizer or configuration, as its manifest names it."""

    object: Literal["fine_tuning.job.checkpoint.artifact"] = "fine_tuning.job.checkpoint.artifact"
    form: Form
    path: str
    bytes: int
    sha256: str
    url: str = Field(description="Path of the download through this API.")
    presigned_url: str | None = Field(
        description="Address in the object store that works without a key, with 'expires_in'."
    )
    presigned_expires_at: int | None


class MergedState(BaseModel):
    """How far a worker is with folding the adapter into its base model."""

    status: Literal["not_requested", "queued", "running", "ready", "failed", "not_applicable"]
    since: int | None
    error: str | None


class ArtifactList(ListPage[ArtifactObject]):
    """Everything that a checkpoint offers for download."""

    fine_tuning_job_id: str
    checkpoint_id: str
    merged: MergedState
