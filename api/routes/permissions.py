"""/v1/fine_tuning/checkpoints/{model}/permissions. Names contain ':' and may contain '/'."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from api.bodies import json_body
from api.pagination import After, Limit
from api.schemas.common import Deleted, ListPageWithIds
from api.schemas.permissions import CreatePermissions, PermissionObject
from api.services import permissions
from api.services.permissions import CheckpointDep
from api.tenant import TenantDep
from core.permissions import grant

router = APIRouter(prefix="/v1/fine_tuning/checkpoints")


@router.post("/{fine_tuned_model_checkpoint:path}/permissions")
def create_permissions(
    model: CheckpointDep,
    tenant: TenantDep,
    body: Annotated[CreatePermissions, Depends(json_body(CreatePermissions))],
) -> ListPageWithIds[PermissionObject]:
    """Let other projects use a trained model or checkpoint."""
    rows = grant(tenant.session, model, body.project_ids)
    return ListPageWithIds.of([PermissionObject.of(row) for row in rows], has_more=False)


@router.get("/{fine_tuned_model_checkpoint:path}/permissions")
def list_permissions(
    model: CheckpointDep,
    tenant: TenantDep,
    after: After = None,
    limit: Limit = None,
    order: Annotated[Literal["ascending", "descending"], Query()] = "descending",
    project_id: Annotated[str | None, Query()] = None,
) -> ListPageWithIds[PermissionObject]:
    """List the projects that may use a model."""
    page = permissions.list_permissions(
        tenant,
        model,
        after=after,
        limit=limit,
        descending=order == "descending",
        project_id=project_id,
    )
    shown = [PermissionObject.of(row) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)


@router.delete("/{fine_tuned_model_checkpoint:path}/permissions/{permission_id}")
def delete_permission(model: CheckpointDep, permission_id: str, tenant: TenantDep) -> Deleted:
    """Take a permission back at once."""
    permissions.take_back(tenant, model, permission_id)
    return Deleted(id=permission_id, object="checkpoint.permission")
