"""The hook for a server of another process: a proxy in front of it that checks what passes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.api.running import serving
from tests.contract.documents import Document
from tests.contract.hook import Checked, settle

#: Headers that belong to one connection, not to the message.
_OF_THE_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"host", b"te"}


@contextmanager
def checked(url: str) -> Iterator[str]:
    """Yield the URL of a proxy for the API at `url`; fail at the end for what was wrong."""
    own = Document(httpx.get(f"{url}/openapi.json").raise_for_status().json())
    with serving(Checked(relay(url), own, templates(own))) as proxy:
        yield proxy
    settle()


def templates(document: Document) -> Callable[[Scope], str | None]:
    """Return a function that finds the path template of a request."""
    patterns = [
        (re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(path))), path)
        for path in sorted(document.content["paths"], key=lambda path: path.count("{"))
    ]
    # `{model}` may hold slashes, so the longest template that fits is meant.
    patterns.sort(key=lambda pair: -len(re.sub(r"\{\w+\}", "", pair[1])))

    def template_of(scope: Scope) -> str | None:
        return next((path for pattern, path in patterns if pattern.fullmatch(scope["path"])), None)

    return template_of


def relay(url: str) -> ASGIApp:
    """Return an application that passes requests on to `url` and answers back, as they come.

    A client that leaves takes its request along.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        target = httpx.URL(url).copy_with(
            raw_path=scope["raw_path"]
            + (b"?" + scope["query_string"]) * bool(scope["query_string"])
        )
        received: asyncio.Queue[Message] = asyncio.Queue(maxsize=1)
        async with httpx.AsyncClient(timeout=None) as client:
            request = client.build_request(
                scope["method"], target, headers=_kept(scope["headers"]), content=_body(received)
            )
            answering = asyncio.create_task(_answer(client, request, send))
            reading = asyncio.create_task(_read(receive, received))
            await asyncio.wait({answering, reading}, return_when=asyncio.FIRST_COMPLETED)
            for task in (answering, reading):
                task.cancel()
            await asyncio.gather(answering, reading, return_exceptions=True)
            if not answering.cancelled():
                answering.result()

    return app


async def _answer(client: httpx.AsyncClient, request: httpx.Request, send: Send) -> None:
    answer = await client.send(request, stream=True)
    start = {"type": "http.response.start", "status": answer.status_code}
    await send({**start, "headers": _kept(answer.headers.raw)})
    async for chunk in answer.aiter_raw():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _kept(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]


async def _read(receive: Receive, received: asyncio.Queue[Message]) -> None:
    """Put down what arrives, until the client has left."""
    while (message := await receive())["type"] != "http.disconnect":
        await received.put(message)


async def _body(received: asyncio.Queue[Message]) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await received.get()
        more = message.get("more_body", False)
        yield message.get("body", b"")
