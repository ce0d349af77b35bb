"""The body that clones a job: what is to be other than in the source."""

from typing import Any

from pydantic import Field

from api.schemas.common import RequestBody


class CloneJob(RequestBody):
    """The body of `POST /v1/fine_tuning/jobs/{id}/clone`: fields of a new job, all optional.

    Objects are merged key by key into those of the source, and null takes a field away.
    """

    model: str | None = None
    training_file: str | None = None
    validation_file: str | None = None
    method: dict[str, Any] | None = Field(
        None, description="Merged into the source's; a grader of another type replaces it."
    )
    hyperparameters: dict[str, Any] | None = Field(
        None, description="Stands above the source's of the same names."
    )
    suffix: str | None = None
    seed: int | None = None
    metadata: dict[str, Any] | None = None
    integrations: list[dict[str, Any]] | None = None
