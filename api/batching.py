"""Concurrent reads share their queries: what is asked while one runs goes into the next.

An answer is never older than its question, because a query that already runs takes no more
questions. So nothing is cached and nothing can be stale; a busy server asks the database less.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Group = TypeVar("Group")
Key = TypeVar("Key")
Value = TypeVar("Value")

#: Turns of the event loop before a query begins; on an idle server some 30 µs in all.
TURNS = 4
#: The most keys in one query.
MAX_KEYS = 100


class Batcher(Generic[Group, Key, Value]):
    """Answers `get(group, key)`; at most one query runs for each group, for many keys at once.

    `fetch(group, keys)` runs in a thread of `pool` and returns what it found, by key. What it
    raises, every caller that waited for it raises.
    """

    def __init__(
        self,
        fetch: Callable[[Group, Sequence[Key]], Mapping[Key, Value]],
        pool: ThreadPoolExecutor,
    ) -> None:
        self._fetch, self._pool = fetch, pool
        self._waiting: dict[Group, dict[Key, list[asyncio.Future[Value | None]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, group: Group, key: Key) -> Value | None:
        """Return the value of `key`, or None when there is none."""
        answer: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(group)
        if waiting is None:
            self._waiting[group] = waiting = defaultdict(list)
            task = asyncio.create_task(self._work(group))
            # The loop keeps no task alive by itself.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting[key].append(answer)
        return await answer

    async def _work(self, group: Group) -> None:
        """Ask until nobody waits any more in this group."""
        loop = asyncio.get_running_loop()
        while waiting := self._waiting[group]:
            # What has arrived already gets to ask, too: reading it takes some turns of the loop.
            for _ in range(TURNS):
                await asyncio.sleep(0)
            keys = list(waiting)[:MAX_KEYS]
            asked = {key: waiting.pop(key) for key in keys}
            try:
                found = await loop.run_in_executor(self._pool, self._fetch, group, keys)
            except Exception as error:
                for answers in asked.values():
                    for answer in answers:
                        if not answer.done():
                            answer.set_exception(error)
                continue
            for key, answers in asked.items():
                value = found.get(key)
                for answer in answers:
                    if not answer.done():  # a client that has left
                        answer.set_result(value)
        del self._waiting[group]
