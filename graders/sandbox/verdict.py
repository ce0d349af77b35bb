"""From what a child said, or how it ended, to an outcome with a sentence."""

import math
import os
import re
import signal
import struct

from graders.outcome import Failure, Score
from graders.sandbox.config import SandboxConfig
from graders.sandbox.jail import wire

_VALUE = struct.Struct("=d")

_CRASHES = {
    signal.SIGKILL: "closed the channel of its result, or was killed as memory ran out,",
    signal.SIGSYS: "made a system call of another architecture and was killed",
    signal.SIGXCPU: "used up its processor time",
}
#: What ends a line for Python: less than what does for `str.splitlines`.
_LINE_END = re.compile(r"\r\n|\r|\n")
#: Longest line of source that a message quotes, in characters.
_MAX_QUOTED = 120
#: Longest description of what grade returned, in characters.
_MAX_SHOWN = 300


def of_reply(body: bytes, source: str, config: SandboxConfig) -> Score | Failure:
    """The outcome that a child reports; it may be anything, for the code inside can forge it."""
    kind, rest = body[:1], body[1:]
    try:
        if kind == b"V":
            return _value(*_VALUE.unpack(rest))
        if kind == b"N":
            shown = rest.decode()[:_MAX_SHOWN]
            return _failed(f"grade returned {shown}; it must return a number (int or float).")
        if kind == b"X":
            return _raised(rest, source, config)
    except (struct.error, UnicodeDecodeError, ValueError):
        pass
    return of_nonsense()


def _value(value: float) -> Score | Failure:
    if math.isfinite(value):
        return Score(value)
    return Failure("non_finite_reward", f"grade returned {value}, not a finite number.")


def _raised(rest: bytes, source: str, config: SandboxConfig) -> Failure:
    memory, line = wire.RAISED.unpack(rest[: wire.RAISED.size])
    name, _, message = rest[wire.RAISED.size :].decode().partition("\0")
    text = f"{name}: {message}" if message else name
    limit = f" The code may use {config.memory_mb:,} MB." if memory else ""
    return _failed(f"{text}{_where(line, source)}{limit}")


def of_nonsense() -> Failure:
    """The reply is none: something else was written where it belongs."""
    return _failed("The code wrote something of its own into the channel of its result.")


def of_end(status: int, said: str) -> Failure:
    """The process ended, or closed its channel, before there was a reply."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        words = f" Its last words: {said.strip()[-300:]}" if said.strip() else ""
        return _failed(f"The code ended its process (code {code}) before grade returned.{words}")
    try:
        how = _CRASHES.get(signal.Signals(-code), f"crashed ({signal.Signals(-code).name})")
    except ValueError:
        how = f"was ended by signal {-code}"
    return _failed(f"The process of the code {how} before grade returned.")


def of_time(config: SandboxConfig) -> Failure:
    """The call was still running at its deadline."""
    detail = f"grade took longer than {config.timeout_s:g} s and was ended."
    return Failure("python_grader_timeout", detail)


def of_disk(config: SandboxConfig) -> Failure:
    """The call wrote too much."""
    return _failed(
        f"The code was ended: it wrote more than {config.disk_mb:,} MB, or too many or too deeply "
        "nested files."
    )


def of_refusals(count: int) -> Failure:
    """The call kept on trying what it must not."""
    return _failed(f"The code was ended after {count:,} system calls that it must not make.")


def _failed(detail: str) -> Failure:
    return Failure("python_grader_runtime_error", detail)


def _where(line: int, source: str) -> str:
    lines = _LINE_END.split(source)
    if not 1 <= line <= len(lines):
        return ""
    text = lines[line - 1].strip()
    quoted = text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
    return f" (line {line}: {quoted})"
