"""Checkpoint permissions, in OpenAI's shapes."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.common import ApiObject, RequestBody
from core.models import CheckpointPermission


class CreatePermissions(RequestBody):
    """The body that lets projects use a model."""

    project_ids: Annotated[list[str], Field(min_length=1, max_length=100)]


class PermissionObject(ApiObject):
    """One project that may use a model; `project_id` is that project."""

    object: Literal["checkpoint.permission"] = "checkpoint.permission"
    created_at: int
    project_id: str

    @classmethod
    def of(cls, row: CheckpointPermission) -> "PermissionObject":
        """Show one database row."""
        return cls(id=row.id, created_at=row.created_at, project_id=row.grantee_id)
