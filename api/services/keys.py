"""API keys: a key makes others for its own project, never stronger than itself.

A key with the scope `admin` makes them for any project; only such a one changes another such.
"""

from sqlalchemy import and_, false, not_, or_

from api.errors import Forbidden
from api.pagination import Page, clamp, paginate
from api.schemas.keys import CreateKey, UpdateKey, expired
from api.tenancy import Tenant
from core import keys
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.models import ApiKey


def create_key(tenant: Tenant, principal: keys.Principal, request: CreateKey) -> tuple[ApiKey, str]:
    """Add a key and return it with its secret; raises `Forbidden` for scopes the caller lacks."""
    _refuse_stronger(principal, request.scopes)
    return keys.create_key(
        tenant.session,
        tenant.project_id,
        request.name,
        scopes=request.scopes,
        expires_at=request.expires_at,
    )


def list_keys(
    tenant: Tenant,
    *,
    after: str | None,
    limit: int | None,
    working: bool | None = None,
    active_project: bool = True,
) -> Page[ApiKey]:
    """Return a page of the project's keys, newest first, revoked ones included.

    `working` keeps those that are let in now (True), or the others (False).
    """
    query = tenant.select(ApiKey)
    has_time = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now())
    works = and_(ApiKey.revoked_at.is_(None), has_time) if active_project else false()
    if working is not None:
        query = query.where(works if working else not_(works))
    return paginate(
        tenant.session,
        query,
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


def update_key(
    tenant: Tenant, principal: keys.Principal, key_id: str, request: UpdateKey
) -> ApiKey:
    """Change what a key may do or how long; raises `Forbidden`, `NotFound` or `InvalidRequest`."""
    key = _changeable(tenant, principal, key_id)
    if key.revoked_at is not None or expired(key):
        raise InvalidRequest(
            f"{key_id} is revoked or has expired and stays so; create a new key.",
            code="api_key_ended",
        )
    if request.scopes is not None:
        _refuse_stronger(principal, request.scopes)
        key.scopes = request.scopes
    if request.expires_in_seconds is not None:
        key.expires_at = now() + request.expires_in_seconds
    tenant.session.flush()
    return key


def revoke_key(tenant: Tenant, principal: keys.Principal, key_id: str) -> None:
    """End a key at once; raises `Forbidden` or `NotFound`."""
    keys.revoke_key(tenant.session, _changeable(tenant, principal, key_id))


def _changeable(tenant: Tenant, principal: keys.Principal, key_id: str) -> ApiKey:
    key = get_key(tenant, key_id)
    if keys.ADMIN in key.scopes and not principal.may(keys.ADMIN):
        raise Forbidden(
            f"{key_id} has the scope 'admin', so only a key with that scope changes or revokes it."
        )
    return key


def _refuse_stronger(principal: keys.Principal, scopes: list[str]) -> None:
    missing = [scope for scope in scopes if not principal.may(scope)]
    if missing and not principal.may(keys.ADMIN):
        raise Forbidden(
            f"This API key lacks the scope '{missing[0]}', so it cannot give it to another key."
        )
