"""Where the completions of one prompt meet, for graders that compare them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from graders import turns
from graders.errors import GradeError
from graders.outcome import Outcome

if TYPE_CHECKING:
    from graders.paths import Context

Rank: TypeAlias = "Callable[[list[Context]], Awaitable[list[Outcome]]]"

#: How long a completion waits for the others of its group, in seconds: they may still be sampled.
MAX_WAIT_S = 3600.0


class Group:
    """The `size` completions of one prompt; each is graded by itself, and may wait here."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.arrived = 0
        self._met: dict[str, _Meeting] = {}

    async def rank(self, name: str, context: "Context", rank: Rank) -> Outcome:
        """Wait until grader `name` knows of every completion; return this one's outcome.

        `rank` is called once, with the contexts that came, in their order, and returns an outcome
        for each. A completion that failed before it came here is not among them, so there may be
        fewer than `size`, and even one. What `rank` raises, every completion's grade raises.
        Waiting takes no turn and no time of the grader's; the ranking has those of the first.
        """
        return await self._meeting(name).attend(context, rank)

    def passed(self, name: str, context: "Context") -> None:
        """Say that grader `name` is done with a completion, so that none waits for it in vain."""
        self._meeting(name).expect_no_more(context)

    def _meeting(self, name: str) -> "_Meeting":
        return self._met.setdefault(name, _Meeting(self.size))


class _Meeting:
    def __init__(self, size: int) -> None:
        self._size = size
        self._seen: set[Context] = set()
        self._contexts: list[Context] = []
        self._complete = asyncio.Event()
        self._ranked: asyncio.Future[dict[Context, Outcome]] | None = None

    async def attend(self, context: "Context", rank: Rank) -> Outcome:
        self._contexts.append(context)
        self.expect_no_more(context)
        turns.leave()
        await self._everyone(context)
        if self._ranked is not None:
            return (await asyncio.shield(self._ranked))[context]
        self._ranked = asyncio.get_running_loop().create_future()
        return (await self._lead(rank, self._ranked))[context]

    def expect_no_more(self, context: "Context") -> None:
        self._seen.add(context)
        if len(self._seen) == self._size:
            self._complete.set()

    async def _everyone(self, context: "Context") -> None:
        if self._complete.is_set():
            return
        if context.on_wait is not None:
            context.on_wait()
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await self._complete.wait()
        except (TimeoutError, asyncio.CancelledError) as error:
            self._contexts.remove(context)
            if isinstance(error, asyncio.CancelledError):
                raise
            detail = (
                f"Only {len(self._seen)} of the {self._size} completions of the group came within "
                f"{MAX_WAIT_S:g} s."
            )
            raise GradeError("unresponsive_reward_error", detail) from error

    async def _lead(
        self, rank: Rank, ranked: "asyncio.Future[dict[Context, Outcome]]"
    ) -> "dict[Context, Outcome]":
        contexts = list(self._contexts)
        try:
            await turns.enter()
            outcomes = dict(zip(contexts, await rank(contexts), strict=True))
        except asyncio.CancelledError:
            detail = "The ranking of the group ended before it gave an answer."
            _fail(ranked, GradeError("unresponsive_reward_error", detail))
            raise
        except Exception as error:
            _fail(ranked, error)
            raise
        ranked.set_result(outcomes)
        return outcomes


def _fail(ranked: "asyncio.Future[dict[Context, Outcome]]", error: Exception) -> None:
    ranked.set_exception(error)
    # Read here once: asyncio complains about errors that nobody read, and no one else may be left.
    ranked.exception()
