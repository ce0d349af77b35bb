"""Sampling and grading the items of one run, some at a time, and storing them in order."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeAlias

from core.errors import StaleFence
from core.eval_items import Entry
from core.eval_runs import HeldRun, held_run
from core.models import EvalItem
from graders import jsontext
from graders.errors import WireError
from workers.context import Context
from workers.evals.ending import RunFailed, TryAgain
from workers.evals.grading import Graders, ungraded
from workers.evals.sampling import Sampled, Sampler, given_sample
from workers.evals.source import Items
from workers.evals.tally import Tally, status_of

#: Items that are being sampled or graded, or wait for one before them, at a time.
WINDOW = 64
#: Items of one transaction, and seconds after which fewer are stored.
BATCH, STORE_S = 32, 0.5
#: Characters after which the window takes in, and a transaction gets, no more: an item may hold
#: images.
WINDOW_CHARS, BATCH_CHARS = 64 * 1024 * 1024, 16 * 1024 * 1024


#: Items in the order of the source, each with its characters.
_Window: TypeAlias = deque[tuple[asyncio.Task[EvalItem], int]]


class Bench:
    """Where the items of a held run are worked on; the fence keeps a former holder from storing."""

    def __init__(
        self,
        context: Context,
        held: HeldRun,
        criteria: list[dict[str, Any]],
        sampler: Sampler | None,
        graders: Graders,
        tally: Tally,
    ) -> None:
        self._context, self._held, self._criteria = context, held, criteria
        self._sampler, self._graders, self._tally = sampler, graders, tally
        self._requests = asyncio.Semaphore(context.settings.eval_concurrency)
        self._batch: list[EvalItem] = []
        self._window_chars = self._batch_chars = 0
        self._stored_at = time.monotonic()

    async def go_through(self, items: Items, done: int) -> None:
        """Work on every item from number `done` on, and store them in order."""
        window: _Window = deque()
        entries = enumerate(items.entries())
        # Not on the event loop, which extends the lease: a million lines take a while.
        await asyncio.to_thread(_skip, entries, done)
        try:
            async with asyncio.TaskGroup() as group:
                for position, entry in entries:
                    chars = len(jsontext.dumps([entry.item, entry.sample]))
                    window.append((group.create_task(self._item(position, entry)), chars))
                    self._window_chars += chars
                    while len(window) >= WINDOW or self._window_chars > WINDOW_CHARS:
                        await self._take(window)
                while window:
                    await self._take(window)
                await self._store()
        except* (RunFailed, TryAgain, StaleFence) as errors:
            # Several items may end it at once; each for a reason that is good enough.
            raise errors.exceptions[0] from None

    async def _take(self, window: _Window) -> None:
        waited = time.monotonic() - self._stored_at
        task, chars = window.popleft()
        if not task.done() and self._batch and waited > STORE_S:
            await self._store()
        self._batch.append(await task)
        self._window_chars -= chars
        self._batch_chars += chars
        if len(self._batch) >= BATCH or self._batch_chars > BATCH_CHARS:
            await self._store()

    async def _item(self, position: int, entry: Entry) -> EvalItem:
        sampled = await self._sample(entry)
        results = await self._grade(sampled, entry)
        return EvalItem(
            run_id=self._held.run_id,
            position=position,
            status=status_of(results),
            item=entry.item,
            results=results,
            sample=sampled.shown,
        )

    async def _grade(self, sampled: Sampled, entry: Entry) -> list[dict[str, Any]]:
        if sampled.for_graders is None:
            return ungraded(self._criteria, **sampled.shown["error"])
        try:
            return await self._graders.grade(sampled.for_graders, entry.item)
        except WireError as error:
            message = f"Item and sample are too large to be graded. {error}"
            return ungraded(self._criteria, "other_error", message)

    async def _sample(self, entry: Entry) -> Sampled:
        if self._sampler is None:
            return given_sample(entry)
        async with self._requests:
            return await self._sampler.sample(entry)

    async def _store(self) -> None:
        batch, self._batch, self._batch_chars = self._batch, [], 0
        self._stored_at = time.monotonic()
        if batch:
            # To its end, even when the work is cancelled: the thread goes on anyhow.
            await asyncio.shield(asyncio.to_thread(self._write, batch))

    def _write(self, batch: list[EvalItem]) -> None:
        for item in batch:
            self._tally.add(item)
        with held_run(self._context.sessions, self._held) as (session, run):
            session.add_all(batch)
            self._tally.show(run)
            run.attempts = 1


def _skip(entries: Iterator[tuple[int, Entry]], count: int) -> None:
    next(itertools.islice(entries, count, count), None)
