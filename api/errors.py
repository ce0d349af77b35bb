"""Every error leaves the API in OpenAI's envelope; this is the only place that writes it.

    {"error": {"message": str, "type": str, "param": str | null, "code": str | null}}

A route raises an error of `core.errors`, or one of these:

    RftError
    ├── Forbidden           403  the key lacks a scope
    ├── PayloadTooLarge     413  the body is larger than the path reads
    ├── WrongContentType    415  the body is of a kind that the path does not read
    └── Unavailable         503  a part of the service cannot be reached
"""

import logging
from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Match, Route

from core.errors import ObjectMissing, RftError, StorageError
from graders.wording import reason

logger = logging.getLogger(__name__)

#: Statuses that a client may repeat on its own; any other answer would stay the same.
RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})


class Forbidden(RftError, PermissionError):
    """The key is good but lacks the scope for this request."""

    code = "insufficient_scope"
    status = 403


class PayloadTooLarge(RftError):
    """The request body is larger than this path reads."""

    code = "request_too_large"
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The request body is larger than {limit:,} bytes, the most this path reads;"
            " send less, or have the operator raise the limit."
        )


class WrongContentType(RftError):
    """The body is of a kind that this path does not read."""

    code = "unsupported_content_type"
    status = 415

    def __init__(self, declared: str, wanted: str) -> None:
        super().__init__(f"Unsupported content type '{declared}': send this body as '{wanted}'.")


class Unavailable(RftError, ConnectionError):
    """A part of the service that the API depends on cannot be reached; later it may."""

    status = 503


def envelope(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    kind: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build the response for one error, and tell OpenAI's clients whether to repeat the request."""
    extra = dict(headers or {})
    if status not in RETRYABLE:
        extra.setdefault("x-should-retry", "false")
    body = error_body(status, message, param=param, code=code, kind=kind)
    return JSONResponse(body, status_code=status, headers=extra)


def error_body(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    kind: str | None = None,
) -> dict[str, dict[str, str | None]]:
    """Build the envelope itself; `status` decides OpenAI's error type unless `kind` is given."""
    kind = kind or ("server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _known(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RftError)
    if error.status == 500:
        # A wrong setting or the like: its sentence is for the operator, not for the caller.
        logger.error("%s %s: %s", request.method, request.url.path, error)
        return bug(request.state.request_id)
    headers = dict(error.headers)
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return envelope(
        error.status,
        error.message,
        param=error.param,
        code=error.code,
        kind=error.type,
        headers=headers,
    )


def _storage(request: Request, error: Exception) -> JSONResponse:
    """Say that the object store failed; its address and its own words stay in the log."""
    assert isinstance(error, StorageError)
    logger.error("%s %s: %s", request.method, request.url.path, error)
    message = (
        "The object store cannot be used right now; nothing already stored is lost. Try again,"
        " and if it stays, have the operator run `rft-server doctor`."
    )
    if isinstance(error, ObjectMissing):
        message = "The stored bytes are gone, although their record is not; upload them again."
    return envelope(error.status, message, code=error.code)


def _database(request: Request, error: Exception) -> JSONResponse:
    """Say that the database failed; what the driver said (host, SQL) stays in the log."""
    logger.error("%s %s: %s", request.method, request.url.path, error)
    message = (
        "The database cannot be used right now; nothing was changed. Try again,"
        " and if it stays, have the operator run `rft-server doctor`."
    )
    return envelope(503, message, code="database_unavailable")


def _unstorable(request: Request, error: Exception) -> JSONResponse:
    """Answer for a value that the database cannot even compare, as U+0000 in a path."""
    logger.info("%s %s: %s", request.method, request.url.path, error)
    message = "A value in the request is one that the database cannot hold; leave it out."
    return envelope(400, message, code="invalid_value")


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    path, headers = request.url.path, dict(error.headers or {})
    if error.status_code == 404:
        message = f"Unknown request URL: {request.method} {path}. Every path of the API is /v1/…."
        return envelope(404, message, code="unknown_url")
    if error.status_code == 405:
        headers = {"allow": ", ".join(_methods(request))}
        message = f"{request.method} is not allowed on {path}; use {headers['allow']}."
        return envelope(405, message, code="method_not_allowed", headers=headers)
    return envelope(error.status_code, str(error.detail), headers=headers)


def _methods(request: Request) -> list[str]:
    """Return what the path of the request takes; each of its routes knows of its own only."""
    matching = [
        route.methods or ()
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    return sorted({method for methods in matching for method in methods})


def _parameter(_: Request, error: Exception) -> JSONResponse:
    """Answer for a query or path parameter that does not parse."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    message = f"Invalid value for '{name}': {reason(first)}."
    return envelope(400, message, param=name, code="invalid_value")


def _disconnected(_: Request, __: Exception) -> JSONResponse:
    return envelope(400, "The client closed the connection before the body was complete.")


def bug(request_id: str) -> JSONResponse:
    """Build the answer for a bug: the client gets the id to report, and nothing else."""
    message = (
        "The server had an error while processing your request;"
        f" report the request id {request_id} to the operator."
    )
    return envelope(500, message, code="internal_error")


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], JSONResponse]] = {
    RftError: _known,
    StorageError: _storage,
    OperationalError: _database,
    InterfaceError: _database,
    NoConnectionFree: _database,
    DataError: _unstorable,
    HTTPException: _http,
    RequestValidationError: _parameter,
    ClientDisconnect: _disconnected,
}
#: What is answered with a sentence of its own; anything else is a bug.
ANSWERED = tuple(_HANDLERS)


def answer_to(request: Request, error: Exception) -> JSONResponse:
    """Build the answer to one of `ANSWERED`, for middleware, which no handler stands behind."""
    kind = next(each for each in type(error).__mro__ if each in _HANDLERS)
    return _HANDLERS[kind](request, error)


def install(app: FastAPI) -> None:
    """Register the handlers above on `app`."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
