"""/v1/organization/api_keys: this server's own; OpenAI manages keys in its dashboard."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.auth import PrincipalDep
from api.bodies import json_body
from api.pagination import After, Limit
from api.schemas.common import Deleted, ListPageWithIds
from api.schemas.keys import CreatedKey, CreateKey, KeyObject
from api.services import keys
from api.tenant import TenantDep

router = APIRouter(prefix="/v1/organization/api_keys")


@router.post("")
def create_key(
    tenant: TenantDep,
    principal: PrincipalDep,
    body: Annotated[CreateKey, Depends(json_body(CreateKey))],
) -> CreatedKey:
    """Create a key; its secret is in this answer and never again."""
    row, secret = keys.create_key(tenant, principal, body)
    return CreatedKey.with_secret(row, secret)


@router.get("")
def list_keys(
    tenant: TenantDep, after: After = None, limit: Limit = None
) -> ListPageWithIds[KeyObject]:
    """List the project's keys."""
    page = keys.list_keys(tenant, after=after, limit=limit)
    return ListPageWithIds.of([KeyObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{key_id}")
def retrieve_key(key_id: str, tenant: TenantDep) -> KeyObject:
    """Show one key."""
    return KeyObject.of(keys.get_key(tenant, key_id))


@router.delete("/{key_id}")
def delete_key(key_id: str, tenant: TenantDep, principal: PrincipalDep) -> Deleted:
    """Revoke a key at once."""
    keys.revoke_key(tenant, principal, key_id)
    return Deleted(id=key_id, object="organization.api_key.deleted")
