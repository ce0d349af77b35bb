"""Taking turns: how many samples one grader grades at a time, and for how long each.

A grade that waits for something other than its own work (see `group`) leaves its turn, which
stops its clock and lets another one begin, and enters again when it goes on.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from graders.errors import GradeError

_CURRENT: "ContextVar[Turn | None]" = ContextVar("turn", default=None)


class Turn:
    """One grade's turn; `worked_s` is how long it had a place, in seconds."""

    def __init__(self, turns: "Turns", clock: asyncio.Timeout) -> None:
        self.worked_s = 0.0
        self._turns, self._clock = turns, clock
        self._since: float | None = None

    async def enter(self) -> None:
        """Wait for a place, and start the clock."""
        await self._turns.places.acquire()
        self._since = time.perf_counter()
        left_s = self._turns.limit_s - self.worked_s
        self._move_clock(asyncio.get_running_loop().time() + left_s)

    def leave(self) -> None:
        """Give the place away and stop the clock; does nothing without a place."""
        if self._since is None:
            return
        self.worked_s += time.perf_counter() - self._since
        self._since = None
        self._turns.places.release()
        self._move_clock(None)

    def end(self) -> None:
        """Have the grade time out at once."""
        self._move_clock(0.0)

    def _move_clock(self, when: float | None) -> None:
        # A clock that has run out, or runs out because the grader is closed, stays so.
        if not self._clock.expired() and self._clock.when() != 0.0:
            self._clock.reschedule(when)


class Turns:
    """The turns of one grader."""

    def __init__(self, count: int, limit_s: float) -> None:
        self.places = asyncio.Semaphore(count)
        self.limit_s = limit_s
        self._open: set[Turn] = set()
        self._closed = False

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn]:
        """Wait for a turn and hold it; raises `GradeError` when it is over before the grade is."""
        if self._closed:
            raise GradeError("unresponsive_reward_error", "The grader is closed.")
        clock = asyncio.timeout(None)
        turn = Turn(self, clock)
        before = _CURRENT.set(turn)
        self._open.add(turn)
        try:
            async with clock:
                try:
                    await turn.enter()
                    yield turn
                finally:
                    turn.leave()
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise GradeError("unresponsive_reward_error", self._why()) from error
        finally:
            self._open.discard(turn)
            _CURRENT.reset(before)

    async def close(self) -> None:
        """End every turn, and wait until the grades that held them have let go."""
        self._closed = True
        for turn in self._open:
            turn.end()
        while self._open:
            await asyncio.sleep(0.001)

    def _why(self) -> str:
        if self._closed:
            return "The grader was closed before it gave an answer."
        return f"The grader gave no answer within {self.limit_s:g} s."


def leave() -> None:
    """Leave the turn of the grade that is running here, if it has one."""
    turn = _CURRENT.get()
    if turn is not None:
        turn.leave()


async def enter() -> None:
    """Enter the turn of the grade that is running here again, if it has one."""
    turn = _CURRENT.get()
    if turn is not None:
        await turn.enter()
