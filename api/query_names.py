"""Refuse query parameters that a route does not read: a mistyped filter would find everything."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute

from api.openapi.texts import UNSEEN
from core.errors import InvalidRequest
from core.nearest import nearest


async def refuse_unknown_query(request: Request) -> None:
    """Raise `InvalidRequest` that names the first parameter which the route does not know.

    A route that reads none has nothing that could be mistyped, and lets all pass.
    """
    if not request.query_params:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [field.alias for field in get_flat_dependant(route.dependant).query_params]
    # As `metadata[key]`, of which the route reads what stands in the brackets.
    unseen = [_plain(each["name"]) for each in UNSEEN.get(route.name, [])]
    known += unseen
    for name in request.query_params if known else ():
        if name not in known and _plain(name) not in unseen:
            close = nearest(name, known)
            hint = f"Did you mean '{close}'?" if close else f"Known are {', '.join(known)}."
            raise InvalidRequest(
                f"Unknown parameter: '{name}'. {hint}", param=name, code="unknown_parameter"
            )


def _plain(name: str) -> str:
    return name.partition("[")[0]
