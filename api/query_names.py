"""Refuse query parameters that a route does not read: a mistyped filter would find everything."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute

from core.errors import InvalidRequest
from core.nearest import nearest


def refuse_unknown_query(request: Request) -> None:
    """Raise `InvalidRequest` that names the first parameter which the route does not know."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [field.alias for field in get_flat_dependant(route.dependant).query_params]
    for name in request.query_params:
        if name not in known:
            close = nearest(name, known)
            hint = f"Did you mean '{close}'?" if close else f"Known are {', '.join(known)}."
            raise InvalidRequest(
                f"Unknown parameter: '{name}'. {hint}", param=name, code="unknown_parameter"
            )
