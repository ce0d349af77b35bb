"""/v1/organization/retention: for how long the project keeps its things."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.bodies import json_body
from api.pagination import MAX_LIMIT, Limit, clamp
from api.schemas.retention import ChangeRetention, Kind, RetentionObject, RetentionPreview
from api.services import retention
from api.tenant import TenantDep

router = APIRouter(prefix="/v1/organization/retention")


@router.get("")
def retrieve_retention(tenant: TenantDep) -> RetentionObject:
    """Show after how many days each kind of thing is deleted."""
    return retention.show(tenant)


@router.post("")
def update_retention(
    tenant: TenantDep, body: Annotated[ChangeRetention, Depends(json_body(ChangeRetention))]
) -> RetentionObject:
    """Set after how many days some kinds of things are deleted."""
    return retention.change(tenant, body)


@router.get("/preview")
def preview_retention(
    tenant: TenantDep,
    within_days: Annotated[int, Query(ge=0, le=36_500)] = 30,
    kind: Kind | None = None,
    limit: Limit = None,
) -> RetentionPreview:
    """List what will be deleted when."""
    most = clamp(limit, default=100, maximum=MAX_LIMIT)
    return retention.preview(tenant, within_days=within_days, kind=kind, limit=most)
