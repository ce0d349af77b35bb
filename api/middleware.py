"""ASGI middleware: OpenAI's response headers, and body limits that hold before a body is read."""

from collections.abc import Callable
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import PayloadTooLarge, envelope
from core.ids import new_id

#: The API version that OpenAI's own servers report.
OPENAI_VERSION = "2020-10-01"

#: The dashboard needs its own files and this API, nothing inline and nothing from elsewhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ResponseHeaders:
    """Give every request an id and every response OpenAI's headers."""

    def __init__(self, app: ASGIApp, *, organization_id: str) -> None:
        self.app = app
        self.organization_id = organization_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        state = scope.setdefault("state", {})
        state["request_id"] = new_id("req_")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = state["request_id"]
                headers["openai-version"] = OPENAI_VERSION
                headers["openai-organization"] = self.organization_id
                headers["openai-processing-ms"] = str(round((perf_counter() - started) * 1000))
                headers["x-content-type-options"] = "nosniff"
                headers["content-security-policy"] = CONTENT_SECURITY_POLICY
                if "project_id" in state:
                    headers["openai-project"] = state["project_id"]
            await send(message)

        await self.app(scope, receive, send_with_headers)


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
