"""How much of a host may be asked at a time: so many requests at once, so many per second."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Requests pass in the order in which they came.

    With `per_second`, at most a tenth of a second's worth may pass at once after a pause; the rest
    is spaced evenly.
    """

    def __init__(self, *, concurrency: int, per_second: float | None = None) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._interval_s = 1 / per_second if per_second else 0.0
        self._burst_s = max(0.0, 0.1 - self._interval_s) if per_second else 0.0
        self._next = self._closed_until = 0.0

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Wait for a turn; another request may pass when the block ends."""
        async with self._slots:
            while (wait_s := self._wait_s()) > 0:
                await asyncio.sleep(wait_s)
            if self._interval_s:
                await self._spaced()
            yield

    def hold(self, seconds: float) -> None:
        """Let nothing more through for that long: the host asked for it."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def _wait_s(self) -> float:
        return self._closed_until - time.monotonic()

    async def _spaced(self) -> None:
        now = time.monotonic()
        turn = max(self._next, now - self._burst_s)
        # Taken before the wait, so that whoever comes meanwhile queues behind.
        self._next = turn + self._interval_s
        if turn > now:
            await asyncio.sleep(turn - now)
