"""/v1/organization/audit_logs, as OpenAI's admin API has it."""

from fastapi import APIRouter, Request

from api.auth import PrincipalDep
from api.pagination import After, Limit
from api.schemas.audit import AuditEntryObject
from api.schemas.common import ListPageWithIds
from api.services import audit
from api.tenant import TenantDep

router = APIRouter(prefix="/v1/organization/audit_logs")


@router.get("")
def list_audit_logs(
    request: Request,
    tenant: TenantDep,
    principal: PrincipalDep,
    after: After = None,
    before: After = None,
    limit: Limit = None,
) -> ListPageWithIds[AuditEntryObject]:
    """List what was changed, by whom and when."""
    wanted = audit.Filter.of(request.query_params)
    page = audit.list_entries(tenant, principal, wanted, after=after, before=before, limit=limit)
    names = audit.project_names(tenant, page.rows)
    shown = [AuditEntryObject.of(row, names[row.project_id]) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)
