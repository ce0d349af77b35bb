"""Who makes a request, and whether the key may make it. Every route under /v1 depends on this."""

from typing import Annotated

from fastapi import Depends, Request

from api.admission import admit
from api.errors import Forbidden
from api.parts import Parts, PartsDep
from api.paths import path_of
from core.errors import InvalidKey
from core.keys import KnownKey, Principal, hash_of, principal_of


def required_scope(method: str, path: str) -> str:
    """Return the scope that a request needs; deciding it here leaves no route without one."""
    if path.startswith("/v1/organization/"):
        return "keys"
    if path in ("/v1/chat/completions", "/v1/completions"):
        return "inference"
    return "read" if method == "GET" else "write"


def secret_of(request: Request) -> str:
    """Return the API key that the request carries, or raise `InvalidKey`."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise InvalidKey("You didn't provide an API key; send it as 'Authorization: Bearer <key>'.")
    return secret.strip()


async def get_principal(request: Request, parts: PartsDep) -> Principal:
    """Return the owner of the request's key, counting the request once.

    Raises `InvalidKey`, `Forbidden` or `RateLimited`.
    """
    # Middleware that must know whose request it is has let it in already.
    before: Principal | None = getattr(request.state, "principal", None)
    if before is not None:
        return before
    return await let_in(request, parts, await parts.reads.key(hash_of(secret_of(request))))


async def let_in(request: Request, parts: Parts, key: KnownKey | None) -> Principal:
    """Return the owner of a key that was looked up; raises as `get_principal` does."""
    principal = principal_of(key, limits=parts.limits)
    await admit(
        request,
        principal,
        organization_id=parts.settings.organization_id,
        limiter=parts.limiter,
        last_use=parts.last_use,
    )
    scope = required_scope(request.method, path_of(request.scope))
    if not principal.may(scope):
        raise Forbidden(
            f"This API key lacks the scope '{scope}'; use a key that has it,"
            " or create one with more scopes."
        )
    return principal


PrincipalDep = Annotated[Principal, Depends(get_principal)]
