"""Call both kinds of the official client in one way: what one returns, the other is awaited for."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

#: Seconds that a worker may take for anything the tests wait for.
PATIENCE_S = 120.0


async def done(value: Any) -> Any:
    """Return the result of a call."""
    return await value if inspect.isawaitable(value) else value


async def every(pages: Any) -> list[Any]:
    """Return all objects of a list, over its pages, or all events of a stream."""
    if not hasattr(pages, "__aiter__"):
        pages = await done(pages)
    if hasattr(pages, "__aiter__"):
        return [each async for each in pages]
    return list(pages)


async def until(call: Callable[[], Any], condition: Callable[[Any], bool], what: str) -> Any:
    """Repeat a call until its result is as wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(result := await done(call())):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}: {result}")
        await asyncio.sleep(0.2)
    return result
