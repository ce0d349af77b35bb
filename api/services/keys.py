"""API keys: a key can make others for its own project, never stronger than itself."""

from api.errors import Forbidden
from api.pagination import Page, clamp, paginate
from api.schemas.keys import CreateKey
from api.tenant import Tenant
from core import keys
from core.errors import NotFound
from core.models import ApiKey


def create_key(tenant: Tenant, principal: keys.Principal, request: CreateKey) -> tuple[ApiKey, str]:
    """Add a key and return it with its secret; raises `Forbidden` for scopes the caller lacks."""
    missing = [scope for scope in request.scopes if not principal.may(scope)]
    if missing:
        raise Forbidden(
            f"This API key lacks the scope '{missing[0]}', so it cannot give it to another key."
        )
    return keys.create_key(
        tenant.session,
        tenant.project_id,
        request.name,
        scopes=request.scopes,
        expires_at=request.expires_at,
    )


def list_keys(tenant: Tenant, *, after: str | None, limit: int | None) -> Page[ApiKey]:
    """Return a page of the project's keys, newest first, revoked ones included."""
    return paginate(
        tenant.session,
        tenant.select(ApiKey),
        order=(ApiKey.created_at, ApiKey.seq, ApiKey.id),
        cursor=None if after is None else tenant.select(ApiKey).where(ApiKey.id == after),
        limit=clamp(limit, default=20),
    )


def get_key(tenant: Tenant, key_id: str) -> ApiKey:
    """Return a key of the project; raises `NotFound`."""
    key = tenant.find(ApiKey, key_id)
    if key is None:
        raise NotFound(
            f"No such API key: {key_id}. GET /v1/organization/api_keys lists them.",
            param="key_id",
            code="api_key_not_found",
        )
    return key
