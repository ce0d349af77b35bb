"""The grader process: an engine behind a Unix socket, so that judge keys and sandboxes live here.

It ends when its standard input reaches end of file: whoever started it holds the other end of
that pipe, so it cannot outlive its parent.
"""

import asyncio
import os
import select
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graders import frames
from graders.engine import Engine
from graders.errors import WireError
from graders.group import Group
from graders.outcome import to_wire
from graders.services import read_config

#: How much of one connection is graded at the same time, in bytes of its requests. Reading goes on
#: only below it; requests that wait for their group do not count.
MAX_BYTES_IN_WORK = 64 * 2**20
#: What a request counts besides its own bytes.
REQUEST_BYTES = 4_096
#: Seconds between two looks at whether the client is still there while nothing is read.
HANG_UP_CHECK_S = 1.0


async def serve(spec: Mapping[str, Any], socket_path: Path) -> None:
    """Serve grades on a new Unix socket until standard input ends; raises `SpecError`."""
    engine = Engine(spec, read_config(os.environ))
    stopped = asyncio.Event()
    # The socket is for its owner only, wherever it lies.
    os.umask(0o077)
    connections = Connections(engine)
    server = await asyncio.start_unix_server(connections.handle, str(socket_path))
    # Ctrl-C reaches the whole terminal group; the owner decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _watch_stdin(asyncio.get_running_loop(), stopped)
    try:
        await stopped.wait()
    finally:
        server.close()
        socket_path.unlink(missing_ok=True)
        await connections.close()
        await engine.close()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(stopped.set)

    # A thread, because the loop cannot wait for files or /dev/null; os.read, because a daemon
    # thread inside sys.stdin would hold its lock at exit.
    threading.Thread(target=watch, daemon=True).start()


class Connections:
    """What happens on the connections of one grader process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: set[asyncio.Task[None]] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Grade the requests of one connection until it ends or breaks the protocol.

        The end of its requests means that the client has left: what is not graded yet is dropped.
        """
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            async with asyncio.TaskGroup() as grades:
                await _Connection(self._engine, writer).read(reader, grades)
                raise _ClientLeft
        except* _ClientLeft:
            pass
        except* WireError as errors:
            writer.write(frames.encode({"id": None, "error": str(errors.exceptions[0])}))
        except* ConnectionError:
            pass  # The client left; there is no one to answer.
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        """End every connection, and wait until what its grades held is free."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


class _ClientLeft(Exception):
    """Ends the grades of a connection whose client has left."""


class _Connection:
    """One connection: its groups, and how much of it is being worked on."""

    def __init__(self, engine: Engine, writer: asyncio.StreamWriter) -> None:
        self._engine, self._writer = engine, writer
        self._groups: dict[int, Group] = {}
        self._bytes = 0
        self._less = asyncio.Event()

    async def read(self, reader: asyncio.StreamReader, grades: asyncio.TaskGroup) -> None:
        """Start a grade for every request, until there are no more."""
        while (body := await _body(reader)) is not None:
            request = frames.decode(body)
            group = _group(request, self._groups)
            number, sample, item = _fields(request)
            share = await self._share(len(body) + REQUEST_BYTES)
            answer = self._answer(number, sample, item, group=group, share=share)
            if self._engine.instant:
                await answer
            else:
                grades.create_task(answer)

    async def _answer(
        self,
        number: int,
        sample: dict[str, Any],
        item: dict[str, Any],
        *,
        group: Group | None,
        share: "_Share",
    ) -> None:
        graded = await self._engine.grade(sample, item, group=group, on_wait=share.give_back)
        reply = {
            "id": number,
            "outcome": to_wire(graded.outcome),
            "latency_s": graded.latency_s,
            "traces": [trace.wire() for trace in graded.traces],
        }
        self._writer.write(frames.encode(reply))
        await self._writer.drain()
        # Only now: a client that reads no replies must not pile them up here.
        share.give_back()

    async def _share(self, size: int) -> "_Share":
        while self._bytes and self._bytes + size > MAX_BYTES_IN_WORK:
            self._less.clear()
            try:
                await asyncio.wait_for(self._less.wait(), HANG_UP_CHECK_S)
            except TimeoutError:
                # Nothing is read meanwhile, so the end of the requests would not be seen.
                if _hung_up(self._writer):
                    raise _ClientLeft from None
        self._bytes += size
        return _Share(self._give_back, size)

    def _give_back(self, size: int) -> None:
        self._bytes -= size
        self._less.set()


class _Share:
    """What one request counts against the connection's bound; given back once.

    A request that waits for its group gives it back at once: the rest of the group is still to be
    read, and would never be if those who wait for it filled the bound.
    """

    def __init__(self, give_back: Callable[[int], None], size: int) -> None:
        self._give_back, self._size = give_back, size

    def give_back(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._give_back(size)


def _hung_up(writer: asyncio.StreamWriter) -> bool:
    poll = select.poll()
    poll.register(writer.get_extra_info("socket").fileno(), 0)
    return bool(poll.poll(0))


async def _body(reader: asyncio.StreamReader) -> bytes | None:
    """Read one frame; None at the end of the connection, `WireError` for half a frame."""
    try:
        header = await reader.readexactly(frames.HEADER.size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise WireError("The connection ended inside a frame.") from error
        return None
    try:
        return await reader.readexactly(frames.length(header))
    except asyncio.IncompleteReadError as error:
        raise WireError("The connection ended inside a frame.") from error


def _group(request: dict[str, Any], groups: dict[int, Group]) -> Group | None:
    """The group that the request belongs to; forgotten here once all its members have come."""
    match request.get("group"):
        case None:
            return None
        case {"id": int(number), "size": int(size)} if size > 0:
            group = groups.setdefault(number, Group(size))
            if group.size != size:
                raise WireError(
                    f"Group {number} was announced with {group.size} members, and now with {size}."
                )
            group.arrived += 1
            if group.arrived == group.size:
                del groups[number]
            return group
    raise WireError("A request's 'group' needs an integer 'id' and a positive 'size'.")


def _fields(request: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    match request:
        case {"id": int(number), "sample": dict(sample), "item": dict(item)}:
            return number, sample, item
    raise WireError("A request needs an integer 'id' and the objects 'sample' and 'item'.")
