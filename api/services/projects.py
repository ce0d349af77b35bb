"""Projects: a key with the scope `admin` sees and changes all, any other key sees its own."""

from typing import Annotated

from fastapi import Depends
from sqlalchemy import Select, select

from api.auth import PrincipalDep
from api.errors import Forbidden
from api.pagination import Page, clamp, paginate
from api.tenancy import Tenant
from api.tenant import TenantDep
from core.errors import InvalidRequest, NotFound
from core.keys import ADMIN, Principal
from core.models import Project


def require_admin(principal: PrincipalDep) -> Principal:
    """Return the caller; raises `Forbidden` for a key without the scope `admin`."""
    if not principal.may(ADMIN):
        raise Forbidden(
            "This API key lacks the scope 'admin', which changing projects needs; have the"
            " operator create one with `rft-server keys create --scope admin`."
        )
    return principal


def get_project(project_id: str, tenant: TenantDep, principal: PrincipalDep) -> Project:
    """Return the project named in the path; raises `NotFound` also where it may not be seen."""
    project = tenant.session.scalar(visible(principal).where(Project.id == project_id))
    if project is None:
        raise NotFound(
            f"No such project: {project_id}. GET /v1/organization/projects lists them.",
            param="project_id",
            code="project_not_found",
        )
    return project


ProjectDep = Annotated[Project, Depends(get_project)]


def get_changeable(project: ProjectDep, principal: PrincipalDep) -> Project:
    """Return the project named in the path for a change to it.

    Raises `NotFound`, `Forbidden`, and `InvalidRequest` for an archived one.
    """
    require_admin(principal)
    if project.archived_at is not None:
        raise InvalidRequest(
            f"Project {project.id} is archived and cannot be changed; create another one.",
            code="project_archived",
        )
    return project


ChangeableDep = Annotated[Project, Depends(get_changeable)]


def tenant_of(project: ProjectDep, tenant: TenantDep) -> Tenant:
    """Return the rows of the project named in the path, which the caller may see."""
    return Tenant(session=tenant.session, project_id=project.id)


ProjectTenantDep = Annotated[Tenant, Depends(tenant_of)]


def visible(principal: Principal) -> Select[Project]:
    """Select the projects that the caller may see."""
    query = select(Project)
    return query if principal.may(ADMIN) else query.where(Project.id == principal.project_id)


def list_projects(
    tenant: Tenant,
    principal: Principal,
    *,
    after: str | None,
    limit: int | None,
    include_archived: bool,
) -> Page[Project]:
    """Return a page of the projects that the caller may see, newest first."""
    seen = visible(principal)
    return paginate(
        tenant.session,
        seen if include_archived else seen.where(Project.archived_at.is_(None)),
        order=(Project.created_at, Project.seq, Project.id),
        cursor=None if after is None else seen.where(Project.id == after),
        limit=clamp(limit, default=20),
    )
