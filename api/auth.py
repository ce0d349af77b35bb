"""Who makes a request, and whether the key may make it. Every route under /v1 depends on this."""

from typing import Annotated

from fastapi import Depends, Request

from api.errors import Forbidden
from api.parts import PartsDep
from core.errors import InvalidKey
from core.keys import Principal, authenticate


def required_scope(method: str, path: str) -> str:
    """Return the scope that a request needs; deciding it here leaves no route without one."""
    if path.startswith("/v1/organization/"):
        return "keys"
    if path == "/v1/chat/completions":
        return "inference"
    return "read" if method == "GET" else "write"


def get_principal(request: Request, parts: PartsDep) -> Principal:
    """Return the owner of the request's key; raises `InvalidKey` or `Forbidden`."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise InvalidKey("You didn't provide an API key; send it as 'Authorization: Bearer <key>'.")
    with parts.sessions() as session:
        principal = authenticate(session, secret.strip())
    request.state.project_id = principal.project_id
    scope = required_scope(request.method, request.url.path)
    if not principal.may(scope):
        raise Forbidden(
            f"This API key lacks the scope '{scope}'; use a key that has it,"
            " or create one with more scopes."
        )
    return principal


PrincipalDep = Annotated[Principal, Depends(get_principal)]
