"""Reads that wait at the same time share a query; none gets an answer older than its question."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from api.batching import MAX_KEYS, Batcher


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for queries."""
    with ThreadPoolExecutor(4) as made:
        yield made


class Source:
    """A database of one number, whose queries wait until they are let go."""

    def __init__(self) -> None:
        self.value = 0
        self.asked: list[list[str]] = []
        self.go = threading.Semaphore(0)
        self.reading = threading.Semaphore(0)

    def fetch(self, _: str, keys: Sequence[str]) -> Mapping[str, int]:
        self.asked.append(list(keys))
        value = self.value
        self.reading.release()
        assert self.go.acquire(timeout=10)
        return {key: value for key in keys if key != "missing"}

    async def until_reading(self) -> None:
        await asyncio.to_thread(self.reading.acquire)


def test_a_question_asked_while_a_query_runs_goes_into_the_next(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        source = Source()
        batcher = Batcher(source.fetch, pool)
        first = asyncio.create_task(batcher.get("g", "a"))
        await source.until_reading()
        # The query has read 0 and has not answered yet: this question must not get that answer.
        source.value = 1
        later = [asyncio.create_task(batcher.get("g", key)) for key in ("a", "b", "a", "missing")]
        await asyncio.sleep(0.01)
        assert source.asked == [["a"]]
        source.go.release(2)
        assert await first == 0
        assert await asyncio.gather(*later) == [1, 1, 1, None]
        assert source.asked == [["a"], ["a", "b", "missing"]]

    asyncio.run(main())


def test_groups_do_not_wait_for_each_other(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        slow, quick = Source(), Source()
        quick.go.release()
        sources = {"slow": slow, "quick": quick}
        batcher = Batcher(lambda group, keys: sources[group].fetch(group, keys), pool)
        waiting = asyncio.create_task(batcher.get("slow", "a"))
        await slow.until_reading()
        assert await batcher.get("quick", "a") == 0
        assert not waiting.done()
        slow.go.release()
        assert await waiting == 0

    asyncio.run(main())


def test_everyone_who_waits_for_a_query_gets_its_error_and_the_next_one_runs(
    pool: ThreadPoolExecutor,
) -> None:
    failing = [True]

    def fetch(_: str, keys: Sequence[str]) -> Mapping[str, int]:
        if failing.pop():
            raise ConnectionError("gone")
        return dict.fromkeys(keys, 1)

    async def main() -> None:
        batcher = Batcher(fetch, pool)
        found = await asyncio.gather(
            batcher.get("g", "a"), batcher.get("g", "b"), return_exceptions=True
        )
        assert [type(each) for each in found] == [ConnectionError, ConnectionError]
        failing.append(False)
        assert await batcher.get("g", "a") == 1

    asyncio.run(main())


def test_one_who_leaves_takes_nothing_from_the_others(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        source = Source()
        batcher = Batcher(source.fetch, pool)
        leaving, staying = (asyncio.create_task(batcher.get("g", "a")) for _ in range(2))
        await source.until_reading()
        leaving.cancel()
        source.go.release()
        assert await staying == 0
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(main())


def test_a_query_takes_a_limited_number_of_keys(pool: ThreadPoolExecutor) -> None:
    asked: list[int] = []

    def fetch(_: str, keys: Sequence[int]) -> Mapping[int, int]:
        asked.append(len(keys))
        return {key: key for key in keys}

    async def main() -> None:
        batcher = Batcher(fetch, pool)
        wanted = range(2 * MAX_KEYS + 1)
        assert await asyncio.gather(*(batcher.get("g", key) for key in wanted)) == list(wanted)

    asyncio.run(main())
    assert asked == [MAX_KEYS, MAX_KEYS, 1]
