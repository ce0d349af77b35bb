"""A client of the grader process, for synchronous code, and a way to start one."""

import json
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graders import frames
from graders.engine import Graded
from graders.errors import GraderProcessError
from graders.outcome import Outcome, from_wire
from graders.trace import Trace

#: How long a caller waits for the next reply, in seconds: longer than any grader may take. A
#: process that died is noticed at once.
RECEIVE_TIMEOUT_S = 7200.0
#: Seconds between two calls of `GraderClient.waiting`.
WAITING_S = 10.0
#: How long a new grader process may take until it listens, in seconds.
START_TIMEOUT_S = 60.0


class Reply(NamedTuple):
    """The answer to the request with this id; latency in seconds, measured by the process."""

    id: int
    outcome: Outcome
    latency_s: float
    traces: tuple[Trace, ...] = ()


class GraderClient:
    """One connection to a grader process; not for use by several threads at once.

    `waiting`, when it is set, is called every few seconds in which no reply comes.
    """

    waiting: Callable[[], None] | None = None

    def __init__(self, path: str | Path) -> None:
        """Connect to the socket at `path`; raises `GraderProcessError`."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise GraderProcessError(f"No grader process listens at {path}: {error}.") from error
        self._socket.setblocking(False)
        self._received = bytearray()
        self._in_flight: set[int] = set()

    def submit(
        self,
        id: int,
        sample: dict[str, Any],
        item: dict[str, Any],
        *,
        group: tuple[int, int] | None = None,
    ) -> None:
        """Send one request; `id` must not be in flight already.

        `group` is the number of the group that the completion belongs to, and the group's size.
        """
        if id in self._in_flight:
            raise ValueError(f"Request {id} is in flight already.")
        shared = {"id": group[0], "size": group[1]} if group else None
        frame = frames.encode({"id": id, "sample": sample, "item": item, "group": shared})
        self._in_flight.add(id)
        self._send(frame)

    def receive(self, timeout_s: float = RECEIVE_TIMEOUT_S) -> Reply:
        """Wait for the next reply, in the order in which grading ends.

        Raises `GraderProcessError` when the process is gone, refuses a frame or takes too long.
        """
        deadline = time.monotonic() + timeout_s
        message = self._next_message(deadline, timeout_s)
        if "error" in message:
            raise GraderProcessError(f"The grader process refused a frame: {message['error']}")
        self._in_flight.discard(message["id"])
        traces = tuple(Trace.from_wire(trace) for trace in message["traces"])
        return Reply(message["id"], from_wire(message["outcome"]), message["latency_s"], traces)

    def grade_all(self, pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> list[Graded]:
        """Grade (sample, item) pairs and return their outcomes in the order of the pairs."""
        if self._in_flight:
            raise ValueError(f"{len(self._in_flight)} requests are in flight; receive them first.")
        count = 0
        for count, (sample, item) in enumerate(pairs, start=1):
            self.submit(count - 1, sample, item)
        replies = {reply.id: reply for reply in (self.receive() for _ in range(count))}
        return [Graded(*replies[i][1:]) for i in range(count)]

    def close(self) -> None:
        """Close the connection; the process goes on."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        # Both sides may be busy writing to each other: take in replies while the socket is full,
        # or neither would ever get on.
        left = memoryview(data)
        while left:
            readable, writable, _ = select.select([self._socket], [self._socket], [])
            if readable:
                self._take_in()
            if writable:
                left = left[self._write(left) :]

    def _write(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except ConnectionError as error:
            raise GraderProcessError("The grader process has closed the connection.") from error

    def _take_in(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionError as error:
            raise GraderProcessError("The grader process has closed the connection.") from error
        if not data:
            raise GraderProcessError("The grader process has closed the connection.")
        self._received += data

    def _next_message(self, deadline: float, timeout_s: float) -> dict[str, Any]:
        while True:
            size = frames.HEADER.size
            if len(self._received) >= size:
                end = size + frames.length(self._received[:size])
                if len(self._received) >= end:
                    body = bytes(self._received[size:end])
                    del self._received[:end]
                    return frames.decode(body)
            wait_s = max(0.0, deadline - time.monotonic())
            if select.select([self._socket], [], [], min(wait_s, WAITING_S))[0]:
                self._take_in()
            elif time.monotonic() >= deadline:
                raise GraderProcessError(f"The grader gave no answer within {timeout_s:g} s.")
            elif self.waiting is not None:
                self.waiting()


@dataclass
class GraderProcess:
    """A running grader process, its socket and a client that is connected to it."""

    client: GraderClient
    socket_path: Path
    _process: subprocess.Popen[bytes]

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process: its standard input ends, and after 5 seconds it is killed."""
        self.client.close()
        _end(self._process)
        self.socket_path.unlink(missing_ok=True)


def start_grader_process(
    spec: Mapping[str, Any], directory: str | Path, *, env: Mapping[str, str] | None = None
) -> GraderProcess:
    """Start a grader process and connect to it.

    Writes `grader.log` into `directory`. `env` replaces the environment.
    Raises `GraderProcessError` with the end of the log when the process does not come up.
    """
    directory = Path(directory).resolve()
    spec_path, log_path = directory / "grader.json", directory / "grader.log"
    # The headers of an endpoint grader are secrets, and the trainer will read this folder: the file
    # is gone once the process has read it.
    spec_path.touch(mode=0o600)
    spec_path.write_text(json.dumps(spec), encoding="utf-8")
    # Not in `directory`: a Unix socket's path may hold 107 bytes only, job folders can be longer.
    socket_path = Path(tempfile.gettempdir()) / f"rft-grader-{secrets.token_hex(8)}.sock"
    files = ["--spec", str(spec_path), "--socket", str(socket_path)]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "graders", *files],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).resolve().parents[1],
            env=env,
            # A signal to the starter's group (Ctrl-C) is the starter's to handle: it closes stdin.
            start_new_session=True,
        )
    try:
        return GraderProcess(_connected(process, socket_path, log_path), socket_path, process)
    except GraderProcessError:
        _end(process)
        socket_path.unlink(missing_ok=True)
        raise
    finally:
        spec_path.unlink()


def _connected(
    process: "subprocess.Popen[bytes]", socket_path: Path, log_path: Path
) -> GraderClient:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return GraderClient(socket_path)
        except GraderProcessError:
            time.sleep(0.02)
    tail = log_path.read_text(encoding="utf-8", errors="replace").strip()[-2_000:]
    raise GraderProcessError(f"The grader process did not start: {tail or 'its log is empty'}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
