"""/v1/organization/projects: OpenAI's admin API, and limits, which are this server's own."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.auth import PrincipalDep
from api.bodies import json_body
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import EmptyBody, ListPageWithIds
from api.schemas.projects import (
    ChangeLimits,
    CreateProject,
    ProjectLimits,
    ProjectObject,
    UpdateProject,
)
from api.services import projects
from api.services.projects import ChangeableDep, ProjectDep, require_admin
from api.tenant import TenantDep
from core.limits import usage
from core.projects import archive_project as end_project
from core.projects import change_limits
from core.projects import create_project as add_project

router = APIRouter(prefix="/v1/organization/projects")


@router.post("", dependencies=[Depends(require_admin)])
def create_project(
    tenant: TenantDep, body: Annotated[CreateProject, Depends(json_body(CreateProject))]
) -> ProjectObject:
    """Create a project."""
    return ProjectObject.of(add_project(tenant.session, body.name))


@router.get("")
def list_projects(
    tenant: TenantDep,
    principal: PrincipalDep,
    after: After = None,
    limit: Limit = None,
    include_archived: Annotated[bool, Query()] = False,
) -> ListPageWithIds[ProjectObject]:
    """List the projects: all of them for a key with the scope `admin`, else the key's own."""
    page = projects.list_projects(
        tenant, principal, after=after, limit=limit, include_archived=include_archived
    )
    return ListPageWithIds.of([ProjectObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{project_id}")
def retrieve_project(project: ProjectDep) -> ProjectObject:
    """Show one project."""
    return ProjectObject.of(project)


@router.post("/{project_id}")
def update_project(
    project: ChangeableDep, body: Annotated[UpdateProject, Depends(json_body(UpdateProject))]
) -> ProjectObject:
    """Rename a project."""
    if body.name is not None:
        project.name = body.name
    return ProjectObject.of(project)


@router.post("/{project_id}/archive", dependencies=[Depends(json_body(EmptyBody))])
def archive_project(
    tenant: TenantDep, project: ProjectDep, principal: PrincipalDep
) -> ProjectObject:
    """End a project: its keys are refused from now on, what it stores stays."""
    require_admin(principal)
    end_project(tenant.session, project)
    return ProjectObject.of(project)


@router.get("/{project_id}/limits")
def retrieve_limits(tenant: TenantDep, project: ProjectDep, parts: PartsDep) -> ProjectLimits:
    """Show a project's limits and what it uses of them."""
    return ProjectLimits.of(project, parts.limits, usage(tenant.session, project.id))


@router.post("/{project_id}/limits")
def update_limits(
    tenant: TenantDep,
    project: ChangeableDep,
    parts: PartsDep,
    body: Annotated[ChangeLimits, Depends(json_body(ChangeLimits))],
) -> ProjectLimits:
    """Set limits of a project, from its next request on."""
    change_limits(project, body.changes())
    tenant.session.flush()
    return ProjectLimits.of(project, parts.limits, usage(tenant.session, project.id))
