"""The grader process: an engine behind a Unix socket, so that judge keys and sandboxes live here.

It ends when its standard input reaches end of file: whoever started it holds the other end of
that pipe, so it cannot outlive its parent.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graders import frames
from graders.engine import Engine
from graders.errors import WireError
from graders.group import Group
from graders.outcome import to_wire
from graders.services import read_config

#: Requests of one connection that are graded at the same time.
MAX_IN_FLIGHT = 256


async def serve(spec: Mapping[str, Any], socket_path: Path) -> None:
    """Serve grades on a new Unix socket until standard input ends; raises `SpecError`."""
    engine = Engine(spec, read_config(os.environ))
    stopped = asyncio.Event()
    # The socket is for its owner only, wherever it lies.
    os.umask(0o077)
    server = await asyncio.start_unix_server(Connections(engine).handle, str(socket_path))
    # Ctrl-C reaches the whole terminal group; the owner decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _watch_stdin(asyncio.get_running_loop(), stopped)
    try:
        await stopped.wait()
    finally:
        server.close()
        socket_path.unlink(missing_ok=True)
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

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Grade the requests of one connection until it ends or breaks the protocol."""
        slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        groups: dict[int, Group] = {}
        try:
            async with asyncio.TaskGroup() as grades:
                while (request := await _read(reader)) is not None:
                    await slots.acquire()
                    grades.create_task(
                        self._answer(request, _group(request, groups), writer, slots)
                    )
        except* WireError as errors:
            writer.write(frames.encode({"id": None, "error": str(errors.exceptions[0])}))
        except* ConnectionError:
            pass  # The client left; there is no one to answer.
        finally:
            writer.close()

    async def _answer(
        self,
        request: dict[str, Any],
        group: Group | None,
        writer: asyncio.StreamWriter,
        slots: asyncio.Semaphore,
    ) -> None:
        number, sample, item = _fields(request)
        graded = await self._engine.grade(sample, item, group=group)
        reply = {
            "id": number,
            "outcome": to_wire(graded.outcome),
            "latency_s": graded.latency_s,
            "traces": [trace.wire() for trace in graded.traces],
        }
        writer.write(frames.encode(reply))
        await writer.drain()
        # Only now: a client that reads no replies must not pile them up here.
        slots.release()


async def _read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Read one request; None at the end of the connection, `WireError` for half a frame."""
    try:
        header = await reader.readexactly(frames.HEADER.size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise WireError("The connection ended inside a frame.") from error
        return None
    try:
        return frames.decode(await reader.readexactly(frames.length(header)))
    except asyncio.IncompleteReadError as error:
        raise WireError("The connection ended inside a frame.") from error


def _group(request: dict[str, Any], groups: dict[int, Group]) -> Group | None:
    """The group that the request belongs to; forgotten here once all its members have come."""
    match request.get("group"):
        case None:
            return None
        case {"id": int(number), "size": int(size)} if size > 0:
            group = groups.setdefault(number, Group(size))
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
