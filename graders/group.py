"""Where the completions of one prompt meet, for graders that compare them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from graders.outcome import Outcome

if TYPE_CHECKING:
    from graders.paths import Context

Rank: TypeAlias = "Callable[[list[Context]], Awaitable[list[Outcome]]]"


class Group:
    """The `size` completions of one prompt; each is graded by itself, and may wait here."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.arrived = 0
        self._met: dict[str, _Meeting] = {}

    async def rank(self, name: str, context: "Context", rank: Rank) -> Outcome:
        """Wait until grader `name` was asked about every completion; return this one's outcome.

        `rank` is called once, with the contexts in the order in which they came, and returns an
        outcome for each. What it raises, every completion's grade raises.
        """
        meeting = self._met.setdefault(name, _Meeting())
        place = len(meeting.contexts)
        meeting.contexts.append(context)
        if len(meeting.contexts) == self.size:
            meeting.start(rank)
        return (await asyncio.shield(meeting.ranked))[place]


class _Meeting:
    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.ranked: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def start(self, rank: Rank) -> None:
        self._task = asyncio.create_task(self._run(rank))

    async def _run(self, rank: Rank) -> None:
        try:
            self.ranked.set_result(list(await rank(self.contexts)))
        except Exception as error:
            self.ranked.set_exception(error)
