"""Running a grader's code as root or as an ordinary user, with and without the sandbox."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
#: In the environment of both runs, and open as a file: what no code may find.
TOKEN = "token-that-nobody-may-see-4711"

#: Payloads start with this: system calls by name, straight to the kernel.
PRELUDE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    number = NR[name] if isinstance(name, str) else name
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *passed)
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result
"""

_BARE = """
import json, sys
request = json.loads(sys.argv[1])
for n, source in enumerate(request["sources"]):
    space = {"__name__": "grader"}
    exec(compile(source, "grader.py", "exec"), space)
    value = space["grade"]({"output_text": ""}, request["item"])
if isinstance(value, float):
    value = float(value)
import os
os.write(request["report"], json.dumps(value).encode())
"""


def numbers() -> str:
    """The table of system call numbers, as the payloads' `NR`."""
    from graders.sandbox.jail import syscalls

    return f"NR = {syscalls.numbers(os.uname().machine)!r}"


@cache
def python_for(uid: int) -> str | None:
    """A Python that this user can run: this one, or the system's where this one is root's own."""
    for path in (sys.executable, "/usr/bin/python3"):
        try:
            found = subprocess.run([path, "-c", "import ctypes"], check=False, **_as(uid))
        except OSError:
            continue
        if found.returncode == 0:
            return path
    return None


def _as(uid: int) -> dict[str, Any]:
    if os.getuid() == uid:
        return {}
    return {"user": uid, "group": uid, "extra_groups": []}


class Bare:
    """Runs code with nothing in its way, in a process that is thrown away."""

    def __init__(self, uid: int, inherited: list[int]) -> None:
        self._uid, self._inherited = uid, inherited

    def run(self, sources: list[str], item: dict[str, Any], *, timeout_s: float = 20.0) -> Any:
        """The value that the last source's `grade` returned, "hung" or "died"."""
        report, theirs = os.pipe()
        request = json.dumps({"sources": sources, "item": item, "report": theirs})
        options = ["-c", _BARE, request]
        process = subprocess.Popen(
            # A shell in between: attacks on the parent must hit one of the same user.
            ["/bin/sh", "-c", '"$@"; exit $?', "sh", str(python_for(self._uid)), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[theirs, *self._inherited],
            env={"SECRET": TOKEN, "PATH": os.environ["PATH"]},
            cwd="/",
            start_new_session=True,
            **_as(self._uid),
        )
        os.close(theirs)
        try:
            _, words = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "hung"
        finally:
            said = _whole(report)
            os.close(report)
        last = words.decode().strip().splitlines()[-1:]
        return json.loads(said) if said else f"died ({process.returncode}): {''.join(last)}"


def _whole(fd: int) -> bytes:
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 65_536)
    except BlockingIOError:
        return b""


class Sandboxed:
    """Runs code in the sandbox of a service that runs as this user."""

    def __init__(self, uid: int, inherited: list[int]) -> None:
        self.uid = uid
        python = str(python_for(uid))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.graders.attacks.service", str(uid), python],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "SECRET": TOKEN},
            pass_fds=inherited,
        )

    def run(self, source: str, item: dict[str, Any], *, timeout_s: float = 20.0) -> dict[str, Any]:
        """What the call came to: value, kind, detail, output, refused."""
        assert self._process.stdin and self._process.stdout
        request = json.dumps({"source": source, "item": item, "timeout_s": timeout_s})
        self._process.stdin.write(request.encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the service."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def code(body: str) -> str:
    """A payload's source: the prelude, and a `grade` with this body."""
    grade = "def grade(sample, item):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return "\n".join((numbers(), PRELUDE, grade))
