"""Bytes that arrive become an object of the store, in bounded memory."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool

from core.errors import StorageError
from core.store import ObjectStore, Stored

logger = logging.getLogger(__name__)

#: Size of what is sent to the store at a time, in bytes.
PART_BYTES = 8 * 1024 * 1024
#: Parts of one object, and of all together, on their way to the store at the same time; the next
#: one waits, and with it the sender.
PARTS_IN_FLIGHT, ALL_IN_FLIGHT = 3, 8


class ObjectSink:
    """Takes one object's bytes as they come; the key holds it once `close` has returned.

    At most `PARTS_IN_FLIGHT` + 2 parts are in memory. `on_part` is called with each part in order.
    """

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        *,
        places: asyncio.Semaphore,
        on_part: Callable[[bytes], None] | None = None,
    ) -> None:
        self.key = key
        self._places = places
        self.bytes = 0
        self._store = store
        self._on_part = on_part
        self._sha256 = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._collected = 0
        self._upload: str | None = None
        self._parts: list[asyncio.Task[str]] = []
        self._ending = False

    async def write(self, data: bytes) -> None:
        """Take the next bytes; waits while the store is slower than the sender."""
        self._sha256.update(data)
        self.bytes += len(data)
        # Some stores want every part but the last to have the same size.
        while self._collected + len(data) >= PART_BYTES:
            missing = PART_BYTES - self._collected
            self._pieces.append(data[:missing])
            data = data[missing:]
            await self._send_part()
        if data:
            self._pieces.append(data)
            self._collected += len(data)

    async def close(self) -> Stored:
        """Store the object and say what it turned out to be."""
        self._ending = True
        if self._upload is None:
            data = self._collect()
            await run_in_threadpool(self._store.put_bytes, self.key, data)
        else:
            if self._collected:
                await self._send_part()
            tags = await asyncio.gather(*self._parts)
            await run_in_threadpool(self._store.finish, self.key, self._upload, tags)
        self._upload = None
        return Stored(self.bytes, self._sha256.hexdigest())

    async def discard(self) -> None:
        """Leave nothing behind, whatever was stored so far; a store that fails is logged."""
        await asyncio.gather(*self._parts, return_exceptions=True)
        try:
            if self._upload is not None:
                await run_in_threadpool(self._store.abort, self.key, self._upload)
            if self._ending:
                # Also when storing it failed: the store may have done what it could not confirm.
                await run_in_threadpool(self._store.delete, self.key)
        except StorageError as error:
            logger.warning("%s, which nobody needs, stays in the store: %s", self.key, error)

    async def _send_part(self) -> None:
        data = self._collect()
        if self._upload is None:
            self._upload = await run_in_threadpool(self._store.begin, self.key)
        running = [part for part in self._parts if not part.done()]
        if len(running) >= PARTS_IN_FLIGHT:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for part in self._parts:
            if part.done():
                part.result()
        await self._places.acquire()
        number = len(self._parts) + 1
        put = run_in_threadpool(self._store.put_part, self.key, self._upload, number, data)
        part = asyncio.ensure_future(put)
        part.add_done_callback(lambda _: self._places.release())
        self._parts.append(part)

    def _collect(self) -> bytes:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._collected = 0
        if self._on_part is not None and data:
            self._on_part(data)
        return data


class Sinks:
    """Opens the sinks of one API process, which share what may be on its way to the store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._places = asyncio.Semaphore(ALL_IN_FLIGHT)

    @asynccontextmanager
    async def open(
        self, key: str, *, on_part: Callable[[bytes], None] | None = None
    ) -> AsyncIterator[ObjectSink]:
        """Open a sink whose object is gone again when the block raises anything."""
        sink = ObjectSink(self._store, key, places=self._places, on_part=on_part)
        kept = False
        try:
            yield sink
            kept = True
        finally:
            if not kept:
                await sink.discard()
