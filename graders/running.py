"""Running one built grader: its turn, its time limit, its cache, and its outcome in a trace."""

import asyncio
import logging
import time
from concurrent.futures import Future

from graders.base import PureGrader, Spec
from graders.cache import Cache
from graders.errors import GradeError
from graders.outcome import Failure, Outcome, Score
from graders.paths import Context
from graders.services import Services
from graders.trace import Trace
from graders.turns import Turn, Turns

#: A pure grader that took longer than this, in seconds, goes on in a thread, so that it does not
#: hold up the others; one that is fast again comes back, as what it took is forgotten bit by bit.
SLOW_S = 0.01
_REMEMBERED = 0.9

_log = logging.getLogger(__name__)


class Runner:
    """One built grader under the name that its outcomes are reported under.

    Its methods raise nothing: whatever goes wrong in a grader is a `Failure`. `instant` says
    whether `score` may be called: the grader only computes, and not for long.
    """

    def __init__(self, spec: Spec, services: Services, name: str) -> None:
        self.spec, self.name = spec, name
        self.grader = spec.build(services)
        self.pure = isinstance(self.grader, PureGrader)
        self.instant = self.pure
        self._services = services
        self._turns = Turns(self.grader.concurrency, self.grader.time_limit_s)
        self._cache = Cache(spec.paths()) if spec.cacheable() and not self.pure else None
        self._slowness_s = 0.0
        self._in_thread = 0
        self._closed = False

    def score(self, context: Context) -> Outcome:
        """Grade on the spot; for pure graders only."""
        assert isinstance(self.grader, PureGrader)
        trace = Trace(self.name, self.spec.type)
        context.traces.append(trace)
        started = time.perf_counter()
        try:
            outcome = self.grader.score(context, trace)
        except GradeError as error:
            outcome = Failure(error.kind, error.detail)
        except Exception as error:
            outcome = self._broken(error)
        trace.latency_s = latency_s = time.perf_counter() - started
        if latency_s > SLOW_S or self._slowness_s:
            self._remember(latency_s)
        if isinstance(outcome, Score) and not outcome.notes:
            trace.score = outcome.value
            return outcome
        return self._settle(outcome, trace)

    async def run(self, context: Context) -> Outcome:
        """Grade in a turn of this grader's; pure ones on the spot, or in a thread when slow."""
        if self.instant:
            return self.score(context)
        if self.pure:
            return await self._score_in_thread(context)
        trace = Trace(self.name, self.spec.type)
        context.traces.append(trace)
        key = self._cache.key(context) if self._cache else None
        try:
            if self._cache is None or key is None:
                outcome = await self._grade(context, trace)
            else:
                outcome = await self._cache.outcome(key, trace, lambda: self._grade(context, trace))
        finally:
            if context.group is not None:
                context.group.passed(self.name, context)
        return self._settle(outcome, trace)

    async def close(self) -> None:
        """End the grades that are going on, and release what the grader holds open."""
        self._closed = True
        await self._turns.close()
        await self.grader.close()

    async def _grade(self, context: Context, trace: Trace) -> Outcome:
        turn: Turn | None = None
        started = time.perf_counter()
        try:
            if not self.grader.takes_turns:
                return await self.grader.grade(context, trace)
            async with self._turns.take() as turn:
                return await self.grader.grade(context, trace)
        except GradeError as error:
            return Failure(error.kind, error.detail)
        except Exception as error:
            return self._broken(error)
        finally:
            trace.latency_s = turn.worked_s if turn else time.perf_counter() - started

    async def _score_in_thread(self, context: Context) -> Outcome:
        if self._closed:
            return self._over()
        # Meanwhile no call is made on the spot: a grader need not bear two at a time.
        loop = asyncio.get_running_loop()
        self.instant = False
        self._in_thread += 1
        work = self._services.thread.submit(self._score_unless_closed, context)

        def done(_work: Future[Outcome]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._left_thread)

        work.add_done_callback(done)
        return await asyncio.wrap_future(work)

    def _score_unless_closed(self, context: Context) -> Outcome:
        return self._over() if self._closed else self.score(context)

    def _over(self) -> Failure:
        return Failure("unresponsive_reward_error", "The grader is closed.", self.name)

    def _left_thread(self) -> None:
        self._in_thread -= 1
        self.instant = not self._slowness_s and not self._in_thread

    def _remember(self, latency_s: float) -> None:
        slowness_s = max(latency_s, _REMEMBERED * self._slowness_s)
        # Nothing to forget any more: back to a call that need not look here.
        self._slowness_s = slowness_s if slowness_s > SLOW_S else 0.0
        self.instant = not self._slowness_s and not self._in_thread

    def _broken(self, error: Exception) -> Failure:
        _log.error("Grader %s broke.", self.name, exc_info=error)
        return Failure("internal_error", f"The grader broke: {type(error).__name__}: {error}"[:500])

    def _settle(self, outcome: Outcome, trace: Trace) -> Outcome:
        settled = self.spec.settle(outcome, self.name)
        if isinstance(settled, Score):
            trace.score = settled.value
            for note in settled.notes:
                # Of a multi's notes most are its children's, which have traces of their own.
                if note.grader == self.name or isinstance(outcome, Failure):
                    trace.failure, trace.detail = note.kind, note.detail
        elif isinstance(settled, Failure):
            trace.failure, trace.detail = settled.kind, settled.detail
        else:
            trace.detail = settled.reason
        return settled
