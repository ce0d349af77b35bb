"""Scores that were paid for once: a bounded memory for graders that always answer the same."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from graders import jsontext
from graders.errors import GradeError
from graders.outcome import Outcome, Score
from graders.paths import Context, Path
from graders.trace import Trace

#: How much one grader's cache holds, in bytes, counted roughly.
MAX_BYTES = 64 * 2**20
#: What an entry costs besides the output that its trace shows, in bytes.
_ENTRY_BYTES = 1_000


class _Kept(NamedTuple):
    score: Score
    model: str | None
    output: str | None

    @property
    def size(self) -> int:
        return _ENTRY_BYTES + 4 * len(self.output or "")


class Cache:
    """The scores of one grader, by the values of the variables that it reads.

    Only scores are kept, never failures; the least recently used go first. Equal requests that
    come while the first is still being graded wait for it.
    """

    def __init__(self, paths: frozenset[Path], max_bytes: int = MAX_BYTES) -> None:
        self._paths = sorted(paths, key=str)
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._running: dict[bytes, asyncio.Future[Outcome | None]] = {}

    def key(self, context: Context) -> bytes | None:
        """What the score depends on; `None` when a variable is absent: that is not cached."""
        try:
            read = [context.value(path) for path in self._paths]
            # In the order of their keys, which a template shows.
            text = jsontext.dumps(read or [context.sample, context.item])
        except (GradeError, jsontext.JsonTextError):
            return None
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()

    async def outcome(
        self, key: bytes, trace: Trace, grade: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        """The kept score, or what `grade` gives; `trace` is marked when it did no work."""
        while key not in self._kept:
            running = self._running.get(key)
            if running is None:
                return await self._grade(key, trace, grade)
            outcome = await asyncio.shield(running)
            # Without an outcome the first was cancelled: one of those who wait takes its place.
            if outcome is not None and key not in self._kept:
                trace.cached, trace.attempts = True, 0
                return outcome
        self._kept.move_to_end(key)
        kept = self._kept[key]
        trace.cached, trace.attempts = True, 0
        trace.model, trace.output = kept.model, kept.output
        return kept.score

    async def _grade(
        self, key: bytes, trace: Trace, grade: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        running: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self._running[key] = running
        outcome: Outcome | None = None
        try:
            outcome = await grade()
        finally:
            del self._running[key]
            if isinstance(outcome, Score):
                self._keep(key, _Kept(outcome, trace.model, trace.output))
            running.set_result(outcome)
        return outcome

    def _keep(self, key: bytes, kept: _Kept) -> None:
        self._kept[key] = kept
        self._bytes += kept.size
        while self._bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.size
