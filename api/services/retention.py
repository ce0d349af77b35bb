"""For how long the project keeps its things, and what that will delete when."""

from api.schemas.retention import (
    ChangeRetention,
    DeletionObject,
    KindTotal,
    RetentionObject,
    RetentionPreview,
)
from api.tenancy import Tenant
from core import retention
from core.clock import now
from core.models import Project
from core.retention import DAY_S, KINDS, Item


def show(tenant: Tenant) -> RetentionObject:
    """Return what the project keeps for how long."""
    project = tenant.session.get_one(Project, tenant.project_id)
    return RetentionObject(project_id=project.id, **retention.days_of(project))


def change(tenant: Tenant, changes: ChangeRetention) -> RetentionObject:
    """Set the days of the kinds that the request names."""
    project = tenant.session.get_one(Project, tenant.project_id)
    days = {**retention.days_of(project), **changes.model_dump(exclude_unset=True)}
    project.retention = {kind: kept for kind, kept in days.items() if kept is not None} or None
    tenant.session.flush()
    return show(tenant)


def preview(tenant: Tenant, *, within_days: int, kind: str | None, limit: int) -> RetentionPreview:
    """List what comes of age within so many days, the earliest first."""
    project = tenant.session.get_one(Project, tenant.project_id)
    until = now() + within_days * DAY_S
    found = [
        item
        for item in retention.items(tenant.session, project, until=until)
        if kind is None or item.kind == kind
    ]
    found.sort(key=lambda item: item.delete_at)
    return RetentionPreview(
        data=[DeletionObject.model_validate(vars(item)) for item in found[:limit]],
        has_more=len(found) > limit,
        until=until,
        totals=[_total(name, found) for name in KINDS if kind in (None, name)],
    )


def _total(kind: str, found: list[Item]) -> KindTotal:
    free = [item for item in found if item.kind == kind and item.held_by is None]
    return KindTotal.model_validate(
        {
            "kind": kind,
            "items": len(free),
            "bytes": sum(item.bytes or 0 for item in free),
            "first_delete_at": min((item.delete_at for item in free), default=None),
        }
    )
