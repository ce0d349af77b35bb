"""Grader processes of the API: graders run in them, with judge keys and sandbox, never here."""

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from api.errors import Unavailable
from core.errors import InvalidRequest, RftError
from graders.client import GraderProcess, Reply, start_grader_process
from graders.errors import GraderProcessError
from graders.outcome import Failure

logger = logging.getLogger(__name__)

#: Graders that run at the same time; further requests wait for one of these places.
PLACES = 8
#: Longest wait for a place, in seconds.
WAIT_S = 30.0
#: Longest run of one grader, in seconds: a python grader may take 120, a judge some retries.
RUN_S = 180.0
#: Idle processes that are kept for the next run of the same grader, and for how many seconds.
KEPT, KEPT_S = 4, 60.0

Result = TypeVar("Result")


@dataclass
class _Held:
    """A process, its folder, and the grader that it runs, for one project."""

    key: tuple[str, str]
    process: GraderProcess
    folder: "tempfile.TemporaryDirectory[str]"
    since: float = field(default_factory=time.monotonic)

    def ask(self, sample: dict[str, Any], item: dict[str, Any], limit_s: float) -> Reply:
        """Grade one sample; blocks."""
        self.process.client.submit(0, sample, item)
        return self.process.client.receive(limit_s)

    def close(self) -> None:
        """End the process; blocks."""
        self.process.close()
        self.folder.cleanup()


class GraderPool:
    """Runs graders, each in a process of its own that is kept for a while.

    Starting one takes about 0.3 s, which a person who tries the same grader on sample after sample
    pays once. `environment` is called with the grader for what its process may know.
    """

    def __init__(
        self, environment: Callable[[dict[str, Any]], Mapping[str, str]], *, run_s: float = RUN_S
    ) -> None:
        self._environment, self._run_s = environment, run_s
        self._threads = ThreadPoolExecutor(max_workers=PLACES, thread_name_prefix="graders")
        self._places = asyncio.Semaphore(PLACES)
        self._idle: list[_Held] = []

    async def grade(
        self, spec: dict[str, Any], sample: dict[str, Any], item: dict[str, Any], *, project_id: str
    ) -> Reply:
        """Grade one sample with a normalised grader.

        A grader that gives no answer in time, or takes its process down, is a `Failure`. Raises
        `Unavailable` when no place becomes free or no process starts, and `InvalidRequest` when
        the process refuses the grader, as one that names an unknown judge.
        """
        try:
            async with asyncio.timeout(WAIT_S):
                await self._places.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"{PLACES} graders are running, and none ended within {WAIT_S:g} seconds; try"
                " again later.",
                code="graders_busy",
            ) from error
        try:
            return await self._grade((project_id, json.dumps(spec)), spec, sample, item)
        finally:
            self._places.release()

    async def aclose(self) -> None:
        """End every process."""
        idle, self._idle = self._idle, []
        for held in idle:
            await self._in_thread(held.close)
        self._threads.shutdown(wait=False)

    async def _grade(
        self,
        key: tuple[str, str],
        spec: dict[str, Any],
        sample: dict[str, Any],
        item: dict[str, Any],
    ) -> Reply:
        held = self._take(key) or await self._start(key, spec)
        started, reply = time.monotonic(), None
        try:
            reply = await self._in_thread(lambda: held.ask(sample, item, self._run_s))
        except GraderProcessError as error:
            name = str(spec["name"])
            failure = Failure("unresponsive_reward_error", str(error), name)
            return Reply(0, failure, time.monotonic() - started)
        finally:
            # What has not answered may still be at work: it ends with its process.
            if reply is None:
                await self._in_thread(held.close)
        self._keep(held)
        return reply

    async def _start(self, key: tuple[str, str], spec: dict[str, Any]) -> _Held:
        def start() -> _Held:
            folder = tempfile.TemporaryDirectory(prefix="rft-grader-")
            try:
                process = start_grader_process(spec, folder.name, env=self._environment(spec))
            except GraderProcessError:
                folder.cleanup()
                raise
            return _Held(key, process, folder)

        try:
            return await self._in_thread(start)
        except GraderProcessError as error:
            raise _refusal(str(error)) from error

    def _take(self, key: tuple[str, str]) -> _Held | None:
        """Take an idle process of this grader; nobody else uses it until it is kept again."""
        for dead in [held for held in self._idle if not held.process.alive]:
            self._let_go(dead)
        found = next((held for held in self._idle if held.key == key), None)
        if found is not None:
            self._idle.remove(found)
        return found

    def _keep(self, held: _Held) -> None:
        held.since = time.monotonic()
        self._idle.append(held)
        while len(self._idle) > KEPT:
            self._let_go(self._idle[0])
        asyncio.get_running_loop().call_later(KEPT_S, self._expire)

    def _expire(self) -> None:
        for held in [h for h in self._idle if time.monotonic() - h.since >= KEPT_S]:
            self._let_go(held)

    def _let_go(self, held: _Held) -> None:
        self._idle.remove(held)
        self._threads.submit(held.close)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _refusal(error: str) -> RftError:
    """Tell a grader that is refused when it is built from a process that does not start."""
    _, refused, reason = error.partition("The grader is refused: ")
    if refused:
        return InvalidRequest(f"Invalid grader: {reason}", param="grader", code="invalid_grader")
    logger.error("%s", error)
    message = (
        "No grader process can be started right now. Try again, and if it stays, have the operator"
        " run `rft-server doctor`."
    )
    return Unavailable(message, code="grader_unavailable")
