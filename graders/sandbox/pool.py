"""The children of one fork-server: some wait, some run, each is used once."""

import asyncio
import os
from collections import deque
from typing import Any

from graders.sandbox.base import SandboxError
from graders.sandbox.child import Child, End
from graders.sandbox.forkserver import ForkServer
from graders.sandbox.jail import tmpdir
from graders.sandbox.notices import Notices

#: How long a child may take to be there, in seconds; it waits for a core, and for the disk.
MAKE_TIMEOUT_S = 30.0
#: Children that may end before they are ready, in a row, before the pool gives up.
MAX_STILLBORN = 5
#: How often the folder of a running call is measured, in seconds.
MEASURE_S = 0.1


class Pool:
    """A running fork-server and its children, for one event loop."""

    def __init__(self, server: ForkServer) -> None:
        """Take over a running fork-server and have all children made."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Child] = deque()
        self._awaiting: deque[asyncio.Future[Child]] = deque()
        self._children: dict[int, Child] = {}
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._stillborn = 0
        self._broken: SandboxError | None = None
        for slot, zygote in enumerate(server.zygotes):
            self._loop.add_reader(zygote.control, self._made, slot)
            if zygote.listener is not None:
                self._loop.add_reader(zygote.listener, self._noticed, slot)
            zygote.ask()

    @property
    def is_usable(self) -> bool:
        """Whether it works, and in the event loop that runs now."""
        return self._broken is None and self._loop is asyncio.get_running_loop()

    @property
    def server_pid(self) -> int:
        """The fork-server's process."""
        return self._server.pid

    async def take(self) -> Child:
        """Take a child that is ready; raises `SandboxError` when there is none to be had."""
        while self._ready:
            child = self._ready.popleft()
            if child.is_alive:
                return child
            self.renew(child)
        if self._broken:
            raise self._broken
        waiting: asyncio.Future[Child] = self._loop.create_future()
        self._awaiting.append(waiting)
        try:
            async with asyncio.timeout(MAKE_TIMEOUT_S):
                return await waiting
        except TimeoutError as error:
            stuck = SandboxError(f"The sandbox made no process in {MAKE_TIMEOUT_S:g} s.")
            self.break_down(stuck)
            raise stuck from error
        except asyncio.CancelledError:
            # A child may have come in the same moment: it is for the next one.
            if waiting.done() and not waiting.cancelled() and not waiting.exception():
                self._greeted(waiting.result())
            raise

    def renew(self, child: Child) -> "asyncio.Future[int]":
        """End a child and have another made in its slot.

        The future gives how the old one ended, as waitpid has it.
        """
        child.close()
        self._children.pop(child.slot, None)
        ended: asyncio.Future[int] = self._loop.create_future()
        self._ended[child.slot] = ended
        if self._broken:
            # Nobody listens for answers any more.
            _refuse(ended, self._broken)
            return ended
        try:
            self._server.zygotes[child.slot].ask()
        except SandboxError as error:
            self.break_down(error)
        return ended

    def break_down(self, error: SandboxError) -> None:
        """Give everything up: what runs ends, what waits is refused."""
        if self._broken:
            return
        self._broken = error
        for zygote in self._server.zygotes:
            self._loop.remove_reader(zygote.control)
            if zygote.listener is not None:
                self._loop.remove_reader(zygote.listener)
        for child in list(self._children.values()):
            child.end(End.GONE)
        futures: list[asyncio.Future[Any]] = [*self._awaiting, *self._ended.values()]
        for waiting in futures:
            if not waiting.done():
                _refuse(waiting, error)
        self._awaiting.clear()

    async def close(self) -> None:
        """End the fork-server and every child."""
        self.break_down(SandboxError("The sandbox was closed."))
        for child in self._children.values():
            child.close()
        self._children.clear()
        await asyncio.to_thread(self._server.end)

    def ask_for_size(self, child: Child) -> int:
        """Have a running call's folder measured; returns a descriptor to read the answer from."""
        return self._server.ask_for_size(child.slot, child.pid)

    def _made(self, slot: int) -> None:
        try:
            made = self._server.zygotes[slot].receive()
        except BlockingIOError:
            return
        except SandboxError as error:
            self.break_down(error)
            return
        ended = self._ended.pop(slot, None)
        if ended is not None and not ended.done():
            ended.set_result(made.status)
        self._children[slot] = Child(slot, made, self._greeted)

    def _noticed(self, slot: int) -> None:
        listener, child = self._server.zygotes[slot].listener, self._children.get(slot)
        assert listener is not None
        # What an ended child still asks for is refused like all else.
        notices = child.notices if child else Notices()
        if not notices.answer(listener) and child:
            child.end(End.REFUSALS)

    def _greeted(self, child: Child) -> None:
        if not child.is_alive:
            self._bury(child)
            return
        self._stillborn = 0
        while self._awaiting:
            waiting = self._awaiting.popleft()
            if not waiting.done():
                waiting.set_result(child)
                return
        self._ready.append(child)

    def _bury(self, child: Child) -> None:
        self._stillborn += 1
        said = child.output.decode(errors="replace").strip()
        self.renew(child)
        if self._stillborn >= MAX_STILLBORN:
            self.break_down(SandboxError(f"The sandbox cannot confine a process: {said}."))


def _refuse(waiting: "asyncio.Future[Any]", error: SandboxError) -> None:
    waiting.set_exception(error)
    waiting.exception()  # Whoever waits raises it; some need it no more, and that is no news.


class Watch:
    """Looks after what one call has on disk, and ends it when that is too much."""

    def __init__(self, pool: Pool, limit_bytes: int) -> None:
        self._pool, self._limit_bytes = pool, limit_bytes
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + MEASURE_S

    def tick(self, child: Child) -> None:
        """Have the folder measured if it is time to."""
        if self._loop.time() < self._due:
            return
        self._due = float("inf")  # until the answer is there
        try:
            answer = self._pool.ask_for_size(child)
        except SandboxError as error:
            self._pool.break_down(error)
            return
        self._loop.add_reader(answer, self._measured, answer, child)

    def _measured(self, answer: int, child: Child) -> None:
        self._loop.remove_reader(answer)
        packet = os.read(answer, tmpdir.MEASURED.size)
        os.close(answer)
        self._due = self._loop.time() + MEASURE_S
        # Nothing is written when the process is gone already.
        if packet and tmpdir.MEASURED.unpack(packet)[0] > self._limit_bytes:
            child.end(End.DISK)


def slots_for(places: int) -> int:
    """How many slots to have: for each child that runs another one waits."""
    return 2 * places
