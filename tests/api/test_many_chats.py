"""Many conversations at once: one that takes long keeps no other waiting."""

import asyncio
from typing import Any

from api.services.answers import CHAT
from api.services.serving import Serving, Target
from tests.servers import free_ports

#: More than an HTTP client opens by default.
MANY = 150
TARGET = Target(name="base-1", base="base-1")
BODY: dict[str, Any] = {"model": "base-1", "messages": []}


def test_requests_do_not_wait_for_each_other() -> None:
    [port] = free_ports(1)

    async def main() -> None:
        arrived = asyncio.Semaphore(0)

        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            arrived.release()
            await reader.read()
            writer.close()

        serving = Serving(f"http://127.0.0.1:{port}", token=None)
        async with await asyncio.start_server(hang, "127.0.0.1", port, backlog=MANY):
            asked = [asyncio.create_task(serving.complete(CHAT, BODY, TARGET)) for _ in range(MANY)]
            async with asyncio.timeout(20):
                for _ in range(MANY):
                    await arrived.acquire()
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await serving.aclose()

    asyncio.run(main())
