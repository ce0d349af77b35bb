"""Projects in the shapes of OpenAI's admin API, and their limits, which are this server's own."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from api.schemas.common import ApiObject, RequestBody
from core.limits import HIGHEST, Limits, Usage
from core.models import Project

Name = Annotated[str, Field(min_length=1, max_length=100)]
#: A number, "unlimited", or "default" for the server's own limit.
Choice = Annotated[int, Field(ge=0, le=HIGHEST)] | Literal["unlimited", "default"] | None


class CreateProject(RequestBody):
    """The body that creates a project."""

    name: Name


class UpdateProject(RequestBody):
    """The body that renames a project."""

    name: Name | None = None


class ChangeLimits(RequestBody):
    """The body that sets limits of a project; what is left out stays."""

    requests_per_minute: Choice = None
    requests_per_minute_per_key: Choice = None
    live_jobs: Choice = None
    gpu_seconds: Choice = None
    stored_bytes: Choice = None

    def changes(self) -> dict[str, int | str | None]:
        """Return what to change, as `core.projects.change_limits` takes it."""
        chosen = self.model_dump(exclude_none=True)
        return {name: None if value == "default" else value for name, value in chosen.items()}


class ProjectObject(ApiObject):
    """A project."""

    object: Literal["organization.project"] = "organization.project"
    name: str
    status: Literal["active", "archived"]
    created_at: int
    archived_at: int | None

    @classmethod
    def of(cls, row: Project) -> "ProjectObject":
        """Show one database row."""
        return cls(
            id=row.id,
            name=row.name,
            status="active" if row.archived_at is None else "archived",
            created_at=row.created_at,
            archived_at=row.archived_at,
        )


class LimitObject(BaseModel):
    """One limit: null is none; `used` is null for what is counted per minute."""

    limit: int | None
    set_by: Literal["server", "project"]
    used: int | None


class LimitObjects(BaseModel):
    """All limits of a project."""

    requests_per_minute: LimitObject
    requests_per_minute_per_key: LimitObject
    live_jobs: LimitObject
    gpu_seconds: LimitObject
    stored_bytes: LimitObject


class ProjectLimits(ApiObject):
    """The limits of the project with this `id`, and what it uses of them."""

    object: Literal["organization.project.limits"] = "organization.project.limits"
    limits: LimitObjects

    @classmethod
    def of(cls, row: Project, server: Limits, used: Usage) -> "ProjectLimits":
        """Show the limits of one project."""
        own = row.limits or {}
        valid = server.changed(own)

        def limit(name: str) -> LimitObject:
            return LimitObject(
                limit=getattr(valid, name),
                set_by="project" if name in own else "server",
                used=getattr(used, name, None),
            )

        shown = {name: limit(name) for name in LimitObjects.model_fields}
        return cls(id=row.id, limits=LimitObjects(**shown))
