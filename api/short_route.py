"""Routes that clients call all day: FastAPI describes them, and seldom has to read their requests.

A request with nothing but the parameters that such a route knows, in their plain form, goes to the
function directly. Any other takes FastAPI's way, so what is refused, and how, stays the same.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from api.auth import let_in, secret_of
from api.parts import Parts, get_parts
from core.keys import KnownKey, hash_of

Found = TypeVar("Found")


class Caller:
    """Who makes a request; checked beside the read that they ask for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._secret = secret_of(request)

    @property
    def parts(self) -> Parts:
        """The parts of the app."""
        return get_parts(self.request)

    async def ask(
        self, read: Callable[..., Awaitable[tuple[KnownKey | None, Found | None]]], *what: Any
    ) -> Found | None:
        """Return what `read(hash of the key, *what)` finds; raises `InvalidKey` or `Forbidden`.

        Key and answer come from the same look at the database, which saves one.
        """
        key, found = await read(hash_of(self._secret), *what)
        await let_in(self.request, self.parts, key)
        return found


async def get_caller(request: Request) -> Caller:
    """Return who makes the request, unchecked so far; raises `InvalidKey` without a key."""
    return Caller(request)


CallerDep = Annotated[Caller, Depends(get_caller)]


class ShortRoute(APIRoute):
    """A route whose function takes `caller`, the ids of its path, `after` and `limit`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        described = super().get_route_handler()
        known = frozenset(field.name for field in self.dependant.query_params)

        async def handle(request: Request) -> Response:
            query = _plain_query(request, known)
            if query is None:
                return await described(request)
            answer: Response = await self.endpoint(
                caller=Caller(request), **request.path_params, **query
            )
            return answer

        return handle


def _plain_query(request: Request, known: frozenset[str]) -> dict[str, Any] | None:
    """Return `after` and `limit` of the URL, or None when it holds anything that is not plain.

    `known` names those of the two that the route takes.
    """
    if not request.scope["query_string"]:
        return {}
    query: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            return None
        if name == "limit" and value.isascii() and value.isdigit() and len(value) < 10:
            query[name] = int(value)
        elif name == "after":
            query[name] = value or None
        else:
            return None
    return query
