"""For how long a project keeps its things, and what that will delete when."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from api.schemas.common import RequestBody

Kind = Literal["files", "checkpoints", "samples", "events", "metrics"]
#: Days after which a kind of thing is deleted; null keeps it for ever.
Days = Annotated[int, Field(ge=1, le=36_500)] | None


class ChangeRetention(RequestBody):
    """The body of `POST /v1/organization/retention`; kinds that are left out stay as they are."""

    files: Days = Field(None, description="Days after the upload.")
    checkpoints: Days = Field(None, description="Days after the end of the job.")
    samples: Days = Field(None, description="Days after the end of the job.")
    events: Days = Field(None, description="Days after the event, in jobs that have ended.")
    metrics: Days = Field(None, description="Days after the end of the job.")


class RetentionObject(BaseModel):
    """Days after which each kind of thing is deleted; null keeps it for ever."""

    object: Literal["organization.retention"] = "organization.retention"
    project_id: str
    files: int | None
    checkpoints: int | None
    samples: int | None
    events: int | None
    metrics: int | None


class DeletionObject(BaseModel):
    """Something that will be deleted; `id` of samples, events and metrics is that of their job."""

    object: Literal["organization.retention.deletion"] = "organization.retention.deletion"
    kind: Kind
    id: str
    name: str | None
    job_id: str | None
    count: int = Field(description="Samples, events or steps; 1 for a file or a checkpoint.")
    bytes: int | None = Field(description="Null where the size is not known.")
    delete_at: int
    held_by: str | None = Field(
        description="The job or eval run that still needs it; it is deleted once that has ended."
    )


class KindTotal(BaseModel):
    """All that one kind will lose, of which nothing is held."""

    kind: Kind
    items: int
    bytes: int
    first_delete_at: int | None


class RetentionPreview(BaseModel):
    """What will be deleted up to `until`, the earliest first."""

    object: Literal["list"] = "list"
    data: list[DeletionObject]
    has_more: bool
    until: int
    totals: list[KindTotal]
