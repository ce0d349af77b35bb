"""Checks every answer that the API gives during a test; what is wrong fails that test.

An answer must be one that our own OpenAPI document describes, and, for OpenAI's paths, one that
OpenAI's document describes (see `tests.contract.reference`), but for `DIFFERENCES`.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.contract.documents import Document, schema_of
from tests.contract.reference import reference

ENVELOPE = "/components/schemas/ErrorResponse"
JSON, EVENTS = "application/json", "text/event-stream"

#: What was wrong with answers since the last `settle`; filled by server threads.
_found: list[str] = []

#: Our own document by the routes that it describes: making it takes a while.
_own: dict[frozenset[str], Document] = {}


def settle() -> None:
    """Fail with what was wrong since the last call."""
    problems = list(_found)
    _found.clear()
    assert not problems, "the API broke its contract:\n" + "\n".join(problems)


def own_document(app: FastAPI) -> Document:
    """Return the document that `app` generates."""
    routes = frozenset(
        f"{sorted(route.methods)} {route.path}"
        for route in app.routes
        if isinstance(route, APIRoute)
    )
    if routes not in _own:
        _own[routes] = Document(app.openapi())
    return _own[routes]


@dataclass
class Answer:
    """One answer as far as it has been sent."""

    method: str
    path: str
    #: The path template of the route, or None where no route was reached.
    template: str | None = None
    status: int = 0
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0]

    def values(self) -> Iterator[object]:
        """Yield the JSON values in the body: one, or one for each event of a stream."""
        if self.content_type == JSON and self.method != "HEAD":
            yield json.loads(self.body)
        for line in self.body.decode().splitlines() if self.content_type == EVENTS else ():
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line.removeprefix("data: "))


class Checked:
    """An application whose answers are checked before their last byte leaves."""

    def __init__(
        self, app: ASGIApp, own: Document, template_of: Callable[[Scope], str | None] | None = None
    ) -> None:
        """`template_of` finds the path template of a request that was answered."""
        self.app = app
        self.own = own
        self.reference = reference()
        self.template_of = template_of or _template_of_route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, and note what is wrong with the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = Answer(scope["method"], scope["path"])

        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = Headers(raw=message["headers"])
                answer.template = self.template_of(scope)
            elif message["type"] == "http.response.body":
                if answer.content_type in (JSON, EVENTS):
                    answer.body += message.get("body", b"")
                if not message.get("more_body", False):
                    _found.extend(self.problems(answer))
            await send(message)

        await self.app(scope, receive, checked)

    def problems(self, answer: Answer) -> list[str]:
        """Say what is wrong with a complete answer."""
        try:
            found = self._problems(answer)
        except ValueError as error:
            found = [f"its content cannot be read: {error}"]
        return [f"{answer.method} {answer.path} → {answer.status}: {each}" for each in found]

    def _problems(self, answer: Answer) -> list[str]:
        found = [] if "x-request-id" in answer.headers else ["it has no x-request-id"]
        if answer.status >= 400 and answer.template != "/health":
            found += _envelope(self.own, answer)
            found += _envelope(self.reference, answer)
        template = answer.template or ""
        if self.own.operation(answer.method, template):
            found += _undocumented(self.own, template, answer)
        theirs = template.removeprefix("/v1")
        if answer.status < 400 and self.reference.operation(answer.method, theirs):
            found += _undocumented(self.reference, theirs, answer)
        return found


def _template_of_route(scope: Scope) -> str | None:
    route = scope.get("route")
    return route.path_format if isinstance(route, APIRoute) else None


def _undocumented(document: Document, template: str, answer: Answer) -> list[str]:
    """Say what the document does not know about the answer: status, media type or content."""
    response = document.response(answer.method, template, answer.status)
    if response is None:
        return [f"the document has no {answer.status} for {template}"]
    types = document.content_types(response)
    if not answer.content_type and not types:
        return []
    if answer.content_type not in types:
        return [f"the document has no {answer.content_type!r}, but {list(types)}"]
    schema = types[answer.content_type].get("schema", {})
    # A stream that is described as text has no schema for its events.
    if not schema or schema == {"type": "string"}:
        return []
    return [
        problem
        for value in answer.values()
        if not _is_error_event(answer, value)
        for problem in document.problems(schema_of(response, answer.content_type), value)
    ]


def _is_error_event(answer: Answer, value: object) -> bool:
    """Say whether a stream reports that it failed: its status was sent long before."""
    return answer.content_type == EVENTS and isinstance(value, dict) and set(value) == {"error"}


def _envelope(document: Document, answer: Answer) -> list[str]:
    if "ErrorResponse" not in document.schemas:
        return []
    if answer.content_type != JSON:
        return [f"an error of type {answer.content_type!r}"]
    return [problem for value in answer.values() for problem in document.problems(ENVELOPE, value)]
