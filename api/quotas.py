"""What the caller's project may still have: checked in the transaction that would add it."""

from fastapi import Request

from api.tenancy import Tenant
from api.tenant import TransactionsDep
from core import limits

#: The most bytes of a form that are not its file.
ENVELOPE = 64 * 1024


def room_for_job(tenant: Tenant) -> None:
    """Raise `QuotaExceeded` when the project may not have one more job or dry run now."""
    limits.check_new_job(tenant.session, tenant.project_id, tenant.limits)


def room_to_run(tenant: Tenant) -> None:
    """Raise `QuotaExceeded` when the project has used up its GPU seconds."""
    limits.check_gpu_seconds(tenant.session, tenant.project_id, tenant.limits)


def room_for_bytes(tenant: Tenant, adding: int) -> None:
    """Raise `QuotaExceeded` when the project may not store so many bytes more."""
    limits.check_stored_bytes(tenant.session, tenant.project_id, tenant.limits, adding)


def room_for_body(request: Request, transactions: TransactionsDep) -> None:
    """Refuse a body by its declared length before it is read; what it holds is counted later."""
    limit = transactions.limits.stored_bytes
    if limit is None:
        return
    declared = request.headers.get("content-length", "")
    adding = int(declared) if declared.isascii() and declared.isdigit() else 0
    # The envelope of a form is no content: a file that just fits must not be refused for it.
    content = max(adding - ENVELOPE, 1)
    with transactions.begin() as tenant:
        used = limits.stored_bytes(tenant.session, tenant.project_id)
    limits.refuse_bytes(used, limit, content)
