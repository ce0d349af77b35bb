"""Whether two formulas are equal, by math-verify, in processes that can be killed.

Computer algebra can take forever, or all memory, on input of a few characters. So it never runs
in the grader process: a worker gets one pair at a time, and one that is late is killed. Other
grades never wait for it.
"""

import asyncio
import importlib.util
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

from graders.errors import GradeError
from graders.quantity.answer import unwrapped

#: How long one comparison may take, and the start of a worker, in seconds.
LIMIT_S, START_S = 5.0, 60.0
#: Longest formula, in characters.
MAX_CHARS = 2_000
#: Workers at a time.
SIZE = 2

_WORKER = Path(__file__).with_name("symbolic_worker.py")


def installed() -> bool:
    """Whether the extra `symbolic` is there."""
    return importlib.util.find_spec("math_verify") is not None


class Symbolic:
    """A few workers, started when they are first needed."""

    def __init__(self, *, size: int = SIZE, limit_s: float = LIMIT_S) -> None:
        self.size = size
        self._limit_s = limit_s
        self._turns = asyncio.Semaphore(size)
        self._idle: list[Process] = []
        self._all: set[Process] = set()

    async def equal(self, answer: str, reference: str) -> bool | None:
        """Whether the formulas are equal; `None` when the reference is no formula.

        An answer that is none, or too long, is not equal. Raises `GradeError` (`other_error`) when
        comparing takes too long or too much memory.
        """
        answer, reference = unwrapped(answer), unwrapped(reference)
        if not reference or len(reference) > MAX_CHARS:
            return None
        if not answer or len(answer) > MAX_CHARS:
            return False
        async with self._turns:
            reply = await self._reply(json.dumps([answer, reference]))
        if not reply:
            raise GradeError("other_error", "Comparing the formulas took too much memory.")
        equal: bool | None = json.loads(reply)
        return equal

    async def close(self) -> None:
        """End the workers."""
        await asyncio.gather(*(self._end(worker) for worker in self._all.copy()))

    async def _reply(self, request: str) -> bytes:
        """What a worker answers; empty when it died."""
        worker = self._idle.pop() if self._idle else await self._start()
        reply = b""
        try:
            reply = await asyncio.wait_for(_ask(worker, request), self._limit_s)
        except TimeoutError as error:
            detail = f"Comparing the formulas took more than {self._limit_s:g} s."
            raise GradeError("other_error", detail) from error
        finally:
            # A worker that still owes a reply, late or cancelled, would give it to the next pair.
            if reply:
                self._idle.append(worker)
            else:
                await self._end(worker)
        return reply

    async def _start(self) -> Process:
        # Isolated, and without our environment: it runs on what a model wrote.
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(_WORKER), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}
        )
        self._all.add(worker)
        ready = b""
        try:
            ready = await asyncio.wait_for(_line(worker), START_S)
        finally:
            if not ready:
                await self._end(worker)
        if not ready:
            raise RuntimeError("The worker that compares formulas does not start.")
        return worker

    async def _end(self, worker: Process) -> None:
        self._all.discard(worker)
        if worker.stdin is not None:
            worker.stdin.close()
        if worker.returncode is None:
            worker.kill()
        await worker.wait()


async def _ask(worker: Process, request: str) -> bytes:
    assert worker.stdin is not None
    try:
        worker.stdin.write(f"{request}\n".encode())
        await worker.stdin.drain()
    except ConnectionError:
        return b""
    return await _line(worker)


async def _line(worker: Process) -> bytes:
    assert worker.stdout is not None
    line = await worker.stdout.readline()
    return line if line.endswith(b"\n") else b""
