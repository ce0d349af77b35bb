"""Work for a client that may leave before it is done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")

#: ASGI's `receive`.
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientLeft(ConnectionError):
    """Nobody waits for the answer any more."""


async def unless_left(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Return what `work` returns; cancel it when the client leaves.

    The request's body must have been read: only then does `receive` wait for the client to leave.
    Raises `ClientLeft`, when nobody will read an answer.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeft("the client left before its answer was there")
    finally:
        await _end(leaving)
        await _end(working)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: "asyncio.Future[Any]") -> None:
    if not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
