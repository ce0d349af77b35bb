"""Entries of the audit log, in the shape of OpenAI's."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from api.schemas.common import ApiObject
from core.models import AuditEntry


class ServiceAccountId(BaseModel):
    """Who a key acts as: itself."""

    id: str


class ActorKey(BaseModel):
    """The key that made a request."""

    id: str
    type: Literal["service_account"] = "service_account"
    service_account: ServiceAccountId


class Actor(BaseModel):
    """Who made a change."""

    type: Literal["api_key"] = "api_key"
    api_key: ActorKey


class AuditedProject(BaseModel):
    """The project that a change was made in."""

    id: str
    name: str


class AuditEntryObject(ApiObject):
    """One change: what was done stands in `type`, and what to in a field of the type's name.

    `actor` is null for changes that the operator made with `rft-server`.
    """

    model_config = ConfigDict(extra="allow")

    object: Literal["organization.audit_log"] = "organization.audit_log"
    type: str
    effective_at: int
    project: AuditedProject
    actor: Actor | None
    request_id: str | None

    @classmethod
    def of(cls, row: AuditEntry, project_name: str) -> "AuditEntryObject":
        """Show one database row."""
        account = None if row.key_id is None else ServiceAccountId(id=row.key_id)
        actor = account and Actor(api_key=ActorKey(id=account.id, service_account=account))
        details: dict[str, Any] = {"id": row.object_id, "data": row.data or {}}
        return cls(
            id=row.id,
            type=row.action,
            effective_at=row.created_at,
            project=AuditedProject(id=row.project_id, name=project_name),
            actor=actor,
            request_id=row.request_id,
            **{row.action: details},
        )
