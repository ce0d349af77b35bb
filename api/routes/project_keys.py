"""/v1/organization/projects/{project_id}/api_keys: OpenAI's admin API, and creating keys."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from api.auth import PrincipalDep
from api.bodies import json_body
from api.pagination import After, Limit
from api.schemas.common import Deleted, ListPageWithIds
from api.schemas.keys import CreatedProjectKey, CreateKey, ProjectKeyObject, UpdateKey
from api.services import keys
from api.services.projects import ProjectDep, ProjectTenantDep
from core.errors import InvalidRequest

router = APIRouter(prefix="/v1/organization/projects/{project_id}/api_keys")


@router.post("")
def create_project_key(
    project: ProjectDep,
    tenant: ProjectTenantDep,
    principal: PrincipalDep,
    body: Annotated[CreateKey, Depends(json_body(CreateKey))],
) -> CreatedProjectKey:
    """Create a key of a project; its secret is in this answer and never again."""
    if project.archived_at is not None:
        raise InvalidRequest(
            f"Project {project.id} is archived, and its keys are refused; name another project.",
            code="project_archived",
        )
    row, secret = keys.create_key(tenant, principal, body)
    return CreatedProjectKey.with_secret(row, secret)


@router.get("")
def list_project_keys(
    project: ProjectDep,
    tenant: ProjectTenantDep,
    after: After = None,
    limit: Limit = None,
    owner_project_access: Annotated[Literal["active", "inactive", "any"], Query()] = "any",
) -> ListPageWithIds[ProjectKeyObject]:
    """List a project's keys."""
    active = project.archived_at is None
    wanted = None if owner_project_access == "any" else owner_project_access == "active"
    page = keys.list_keys(tenant, after=after, limit=limit, working=wanted, active_project=active)
    shown = [ProjectKeyObject.of(row, active_project=active) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)


@router.get("/{key_id}")
def retrieve_project_key(
    key_id: str, project: ProjectDep, tenant: ProjectTenantDep
) -> ProjectKeyObject:
    """Show one key of a project."""
    active = project.archived_at is None
    return ProjectKeyObject.of(keys.get_key(tenant, key_id), active_project=active)


@router.post("/{key_id}")
def update_project_key(
    key_id: str,
    project: ProjectDep,
    tenant: ProjectTenantDep,
    principal: PrincipalDep,
    body: Annotated[UpdateKey, Depends(json_body(UpdateKey))],
) -> ProjectKeyObject:
    """Change what a key may do, or how long."""
    row = keys.update_key(tenant, principal, key_id, body)
    return ProjectKeyObject.of(row, active_project=project.archived_at is None)


@router.delete("/{key_id}")
def delete_project_key(key_id: str, tenant: ProjectTenantDep, principal: PrincipalDep) -> Deleted:
    """Revoke a key of a project at once."""
    keys.revoke_key(tenant, principal, key_id)
    return Deleted(id=key_id, object="organization.project.api_key.deleted")
