"""Looking at a grader's source before it is used: compiled in the sandbox, never run.

Also the way to find out whether there is a sandbox on this machine at all.
"""

import json
import secrets
import select
import socket
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from graders.sandbox.base import SandboxError
from graders.sandbox.config import SandboxConfig
from graders.sandbox.forkserver import ForkServer, Made
from graders.sandbox.jail import wire

#: How long compiling may take, in seconds, and in megabytes.
TIMEOUT_S = 20.0
_LIMITS = {"timeout_s": TIMEOUT_S, "memory_mb": 1024, "concurrency": 1}
#: Sources that are compiled at the same time: a short one can need all of that memory.
MAX_AT_A_TIME = 2
_turns = threading.BoundedSemaphore(MAX_AT_A_TIME)


@dataclass(frozen=True)
class Inspected:
    """What a source imports, and which of that is not installed where graders run."""

    imports: tuple[str, ...]
    missing: tuple[str, ...]


class SourceError(ValueError):
    """The source cannot be a grader: a sentence without its full stop; line and column from 1."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.message, self.line, self.column = message, line, column
        super().__init__(message, line, column)

    def __str__(self) -> str:
        where = f" (line {self.line}" if self.line else ""
        where += f", column {self.column}" if self.line and self.column else ""
        return f"{self.message}{where}{')' if where else ''}"


@dataclass(frozen=True)
class Support:
    """Which tier runs python graders on this machine; None with the reason in `detail`."""

    tier: Literal["process"] | None
    detail: str


@lru_cache(maxsize=64)
def inspect_source(source: str, python: str) -> Inspected:
    """Compile a source in a process of its own; blocks for some 50 ms.

    Raises `SourceError` when it cannot be a grader, `SandboxError` when nothing can be confined.
    """
    with _turns:
        server = _started(python)
        try:
            found = _asked(server, source)
        finally:
            server.end()
    if "problem" in found:
        raise SourceError(str(found["problem"]), found["line"], found["column"])
    return Inspected(tuple(found["imports"]), tuple(found["missing"]))


@lru_cache(maxsize=8)
def support(python: str) -> Support:
    """Start the sandbox once to see whether it can be had; blocks, and remembers the answer."""
    try:
        server = _started(python)
    except SandboxError as error:
        return Support(None, str(error))
    server.end()
    hello = server.hello
    counted = "counted" if hello["listener"] else "not counted"
    return Support(
        "process",
        f"Landlock ABI {hello['landlock']}, seccomp (refused calls are {counted}), "
        f"user {hello['uid']}",
    )


def _started(python: str) -> ForkServer:
    config = SandboxConfig(python=python, **_LIMITS)
    return ForkServer(config, slots=1, inspect=True)


def _asked(server: ForkServer, source: str) -> dict[str, Any]:
    [zygote] = server.zygotes
    zygote.ask()
    deadline = time.monotonic() + TIMEOUT_S
    _wait(zygote.control, deadline)
    made = zygote.receive()
    try:
        reply = _reply(made, source, deadline)
    finally:
        made.close()
    if reply[:1] != b"J":
        raise SourceError("it cannot be compiled within the limits of memory and time")
    found: dict[str, Any] = json.loads(reply[1:])
    return found


def _reply(made: Made, source: str, deadline: float) -> bytes:
    nonce = secrets.token_bytes(wire.NONCE_BYTES)
    received = b""
    made.channel.settimeout(max(0.01, deadline - time.monotonic()))
    try:
        made.channel.sendall(wire.request(nonce, source))
        while piece := made.channel.recv(1 << 16):
            received += piece
            made.channel.settimeout(max(0.01, deadline - time.monotonic()))
    except (TimeoutError, ConnectionError):
        return b""
    # One byte says that the child is locked down; the code in question was never run, so what
    # follows is the child's own word.
    return received[1 + wire.NONCE_BYTES + wire.LENGTH.size :]


def _wait(control: socket.socket, deadline: float) -> None:
    if not select.select([control], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise SandboxError(f"The sandbox made no process in {TIMEOUT_S:g} s.")
