"""ASGI middleware: OpenAI's response headers, and body limits that hold before a body is read."""

from collections.abc import Callable
from time import perf_counter

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import PayloadTooLarge, bug, envelope
from core.ids import new_id

#: The API version that OpenAI's own servers report.
OPENAI_VERSION = "2020-10-01"

#: Seconds after which a part that was away may be back, as a restarted one is.
RETRY_AFTER_S = "2"

#: Headers of an answer that a web page of another origin may read.
EXPOSED = (
    "x-request-id",
    "openai-organization",
    "openai-processing-ms",
    "openai-project",
    "openai-version",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "idempotent-replayed",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "etag",
    "content-disposition",
    "content-range",
)

#: The dashboard needs its own files and this API, nothing inline and nothing from elsewhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ResponseHeaders:
    """Give every request an id and every response OpenAI's headers, that of a bug too."""

    def __init__(self, app: ASGIApp, *, organization_id: str) -> None:
        self.app = app
        self._fixed = [
            (b"openai-version", OPENAI_VERSION.encode()),
            (b"openai-organization", organization_id.encode("latin-1", "replace")),
            (b"x-content-type-options", b"nosniff"),
            (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        begun = False
        state = scope.setdefault("state", {})
        state["request_id"] = new_id("req_")

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                # Every answer passes here, so the pairs are put down as they travel.
                milliseconds = round((perf_counter() - started) * 1000)
                message["headers"] = [
                    *message.get("headers", ()),
                    *self._fixed,
                    (b"x-request-id", state["request_id"].encode()),
                    (b"openai-processing-ms", str(milliseconds).encode()),
                ]
                if "project_id" in state:
                    message["headers"].append((b"openai-project", state["project_id"].encode()))
                if state.get("rate_headers"):
                    MutableHeaders(scope=message).update(state["rate_headers"])
                if message["status"] == 503:
                    MutableHeaders(scope=message).setdefault("retry-after", RETRY_AFTER_S)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            # A bug: the client gets an answer with these headers, the server's log the traceback.
            if not begun:
                await bug(state["request_id"])(scope, receive, send_with_headers)
            raise


class BodyLimit:
    """Refuse a body that is too large: by its declared length, or else while it streams in."""

    def __init__(self, app: ASGIApp, *, limit_for: Callable[[Scope], int]) -> None:
        self.app = app
        self.limit_for = limit_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.limit_for(scope)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared) > limit:
            error = PayloadTooLarge(limit)
            # The body stays unread, so what follows on this connection is no request.
            headers = {"connection": "close"}
            response = envelope(error.status, error.message, code=error.code, headers=headers)
            await response(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            # A chunked body declares no length, so it is stopped once it has grown past the limit.
            if received > limit:
                raise PayloadTooLarge(limit)
            return message

        await self.app(scope, counted, send)


def add_cors(app: Starlette, origins: str) -> None:
    """Let web pages of these origins (separated by commas or spaces) call the API; none if empty.

    No cookie counts here, so a page gets nothing that it has no key for.
    """
    allowed = origins.replace(",", " ").split()
    if allowed:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=allowed,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=EXPOSED,
            max_age=600,
        )
