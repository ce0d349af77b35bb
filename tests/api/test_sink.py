"""A sink keeps a bounded number of parts in memory, and stores them in order."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator

import pytest

from api.services import sink
from api.services.sink import ALL_IN_FLIGHT, PARTS_IN_FLIGHT, Sinks
from tests.fakes import memory_store
from tests.fakes.memory_store import MemoryStore

PART = 1000
CONTENT = bytes(range(256)) * 100


class SlowStore(MemoryStore):
    """Stores no part before it is told to, and remembers how many came."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.came = 0

    def put_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        self.came += 1
        self.go.wait(30)
        return super().put_part(key, upload, number, data)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts of a thousand bytes."""
    monkeypatch.setattr(sink, "PART_BYTES", PART)
    monkeypatch.setattr(memory_store, "MIN_PART_BYTES", PART)
    yield


def test_a_slow_store_holds_up_the_sender() -> None:
    store, written = SlowStore(), 0

    async def send() -> None:
        nonlocal written
        async with Sinks(store).open("a") as target:
            for start in range(0, len(CONTENT), 100):
                await target.write(CONTENT[start : start + 100])
                written = start + 100
            stored = await target.close()
        assert stored == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())

    async def watch() -> None:
        sending = asyncio.create_task(send())
        for _ in range(100):
            await asyncio.sleep(0.002)
        assert store.came <= PARTS_IN_FLIGHT
        assert written <= (PARTS_IN_FLIGHT + 1) * PART
        store.go.set()
        await sending

    asyncio.run(watch())
    assert store.objects == {"a": CONTENT}


def test_many_senders_share_what_may_be_on_its_way() -> None:
    store = SlowStore()
    sinks = Sinks(store)

    async def send(key: str) -> None:
        async with sinks.open(key) as target:
            await target.write(CONTENT)
            await target.close()

    async def watch() -> None:
        sending = [asyncio.create_task(send(f"{number}")) for number in range(6)]
        for _ in range(100):
            await asyncio.sleep(0.002)
        assert PARTS_IN_FLIGHT < store.came <= ALL_IN_FLIGHT
        store.go.set()
        await asyncio.gather(*sending)

    asyncio.run(watch())
    assert set(store.objects.values()) == {CONTENT} and len(store.objects) == 6


def test_pieces_of_any_size_make_parts_of_one_size() -> None:
    store = MemoryStore()
    parts: list[bytes] = []

    async def send(sizes: list[int]) -> None:
        async with Sinks(store).open("a", on_part=parts.append) as target:
            start = 0
            for size in sizes:
                await target.write(CONTENT[start : start + size])
                start += size
            await target.close()

    for sizes, made in (
        ([5 * PART + 1], [PART] * 5 + [1]),
        ([PART - 1, 1, 2 * PART], [PART] * 3),
        ([PART - 1], [PART - 1]),
        ([PART - 1, 2, PART], [PART, PART, 1]),
    ):
        parts.clear()
        asyncio.run(send(sizes))
        assert [len(part) for part in parts] == made
        assert store.objects["a"] == b"".join(parts) == CONTENT[: sum(sizes)]


def test_a_sender_that_is_stopped_leaves_nothing() -> None:
    store = SlowStore()

    async def send() -> None:
        async with Sinks(store).open("a") as target:
            await target.write(CONTENT)

    async def stop() -> None:
        sending = asyncio.create_task(send())
        while not store.came:
            await asyncio.sleep(0.002)
        sending.cancel()
        await asyncio.sleep(0.01)
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(stop())
    assert not store.objects and not store.begun
