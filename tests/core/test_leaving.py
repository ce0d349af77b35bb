"""Work for clients that may leave, and lines of streams."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core.event_lines import event_lines
from core.leaving import ClientLeft, unless_left


class Client:
    """Whoever waits for an answer."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.left.wait()
        return {"type": "http.disconnect"}


def test_work_is_done_for_a_client_that_stays() -> None:
    async def main() -> None:
        client = Client()
        assert await unless_left(client.receive, asyncio.sleep(0, "done")) == "done"
        with pytest.raises(ZeroDivisionError):
            await unless_left(client.receive, fail())
        assert len(asyncio.all_tasks()) == 1

    async def fail() -> None:
        raise ZeroDivisionError

    asyncio.run(main())


def test_work_ends_when_its_client_leaves() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        client = Client()
        asyncio.get_running_loop().call_soon(client.left.set)
        with pytest.raises(ClientLeft):
            await unless_left(client.receive, work())
        assert ended == [True]

    asyncio.run(main())


def test_work_ends_when_the_server_does() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        task = asyncio.create_task(unless_left(Client().receive, work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(main())


def test_lines_end_at_line_feeds_only() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for part in ("a\u2028".encode(), b"b\r\n\nc\x0bd", b"\ne"):
            yield part

    async def main() -> list[str]:
        return [line async for line in event_lines(chunks())]

    assert asyncio.run(main()) == ["a\u2028b", "", "c\x0bd", "e"]
