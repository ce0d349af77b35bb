"""The fork-server as the service sees it: started, asked for children, ended."""

import ast
import marshal
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from graders.sandbox.base import SandboxError
from graders.sandbox.config import SandboxConfig

#: How long a fork-server may take to come up; it imports packages meanwhile.
START_TIMEOUT_S = 60.0
#: How long it may take to end.
END_TIMEOUT_S = 5.0

_MADE = struct.Struct("=iI")
_MEASURE = struct.Struct("=II")
_HELLO_BYTES = 65_536
_MAX_WORDS_BYTES = 1_000

_GONE = "The sandbox's fork-server ended unexpectedly."

#: The package lies beside this file and is imported under its own name: the interpreter need not
#: have anything of ours.
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from jail import server; "
    "del sys.path[0]; server.main(int(sys.argv[2]), sys.argv[3])"
)
#: Isolated from the starter's variables and folder, without .pth files and without columns in
#: tracebacks, which only cost memory.
_FLAGS = ("-I", "-S", "-B", "-X", "no_debug_ranges")
#: Variables that decide how numeric libraries compute, not what they may reach.
_KEPT_VARIABLES = ("TZ", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LD_LIBRARY_PATH")
#: One thread each: as many calls as there are cores run at the same time.
_ONE_THREAD = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
)


class Made(NamedTuple):
    """A new child, its process id, and two descriptors to own; `status` is of the one before."""

    status: int
    pid: int
    channel: socket.socket
    output: int

    def close(self) -> None:
        """Let go of both; the process is its zygote's to end."""
        self.channel.close()
        os.close(self.output)


class Zygote:
    """What the children of one slot are forked from; one child at a time.

    `listener` tells of system calls that were refused, where the kernel lets us have it.
    """

    def __init__(self, control: socket.socket) -> None:
        """Wait until it is confined; raises `SandboxError` when it cannot be."""
        self.control = control
        _, fds = _received(control, 1, None)
        self.listener = fds[0] if fds else None
        control.setblocking(False)

    def ask(self) -> None:
        """Have the child ended, if there is one, and a new one made."""
        try:
            self.control.send(b"N")
        except OSError as error:
            raise SandboxError(_GONE) from error

    def receive(self) -> Made:
        """Take the new child; raises `SandboxError` when the zygote is gone.

        Raises `BlockingIOError` when there is none yet.
        """
        packet, fds = _received(self.control, _MADE.size, 2)
        status, pid = _MADE.unpack(packet)
        return Made(status, pid, socket.socket(fileno=fds[0]), fds[1])

    def close(self) -> None:
        """Let go of it; it ends, and so does its child."""
        self.control.close()
        if self.listener is not None:
            os.close(self.listener)
            self.listener = None


class ForkServer:
    """A running fork-server; `hello` is what it said about itself."""

    def __init__(
        self,
        config: SandboxConfig,
        *,
        slots: int,
        preload: Sequence[str] = (),
        inspect: bool = False,
    ) -> None:
        """Start one and wait until it is up; raises `SandboxError`.

        `inspect`: its children are to look at sources, too.
        """
        self._python = config.python
        self.zygotes: list[Zygote] = []
        self.hello: dict[str, Any] = {}
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # A file: nobody reads along, and a full pipe would stop the server.
            self._words = tempfile.TemporaryFile()  # noqa: SIM115 - read and closed in `end`
            options = _options(config, slots, preload) | {"inspect": inspect}
            self._process = _started(config, options, theirs.fileno(), self._words)
        try:
            self.hello = self._greeting()
            self.zygotes = [self._zygote() for _ in range(slots)]
        except SandboxError:
            self.end()
            raise

    def ask_for_size(self, slot: int, pid: int) -> int:
        """Have what a process and its slot's folder hold on disk measured.

        Returns a descriptor to read the 8 bytes of the answer from.
        """
        answer, theirs = os.pipe()
        try:
            socket.send_fds(self.control, [_MEASURE.pack(slot, pid)], [theirs])
        except OSError as error:
            os.close(answer)
            raise SandboxError(_GONE) from error
        finally:
            os.close(theirs)
        return answer

    def end(self) -> None:
        """End the fork-server and with it every child; blocks until they are gone."""
        self.control.close()
        for zygote in self.zygotes:
            zygote.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()
        if self.hello:
            # It removes its folder itself, unless it was killed.
            shutil.rmtree(self.hello["folder"], ignore_errors=True)

    @property
    def pid(self) -> int:
        """The fork-server's process."""
        return self._process.pid

    def _greeting(self) -> dict[str, Any]:
        self.control.settimeout(START_TIMEOUT_S)
        try:
            packet = self.control.recv(_HELLO_BYTES)
        except TimeoutError as error:
            raise SandboxError(f"The sandbox did not start in {START_TIMEOUT_S:g} s.") from error
        except ConnectionError:
            packet = b""
        if not packet:
            raise SandboxError(f"The sandbox of {self._python} did not start: {self._last_words()}")
        self.control.settimeout(None)
        hello: dict[str, Any] = ast.literal_eval(packet.decode())
        if "refused" in hello:
            raise SandboxError(hello["refused"])
        return hello

    def _zygote(self) -> Zygote:
        _, fds = _received(self.control, 1, 1)
        return Zygote(socket.socket(fileno=fds[0]))

    def _last_words(self) -> str:
        code = self._process.wait()
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with code {code} and without a word."


def _received(control: socket.socket, size: int, count: int | None) -> tuple[bytes, list[int]]:
    """A packet of this size with this many descriptors, or any number of them."""
    try:
        packet, fds, _, _ = socket.recv_fds(control, _MAX_WORDS_BYTES, 2)
    except ConnectionError:
        packet, fds = b"", []
    if len(packet) != size or count not in (None, len(fds)):
        for fd in fds:
            os.close(fd)
        raise SandboxError(packet.decode(errors="replace") or _GONE)
    return packet, fds


def _options(config: SandboxConfig, slots: int, preload: Sequence[str]) -> dict[str, Any]:
    return {
        "slots": slots,
        "preload": list(preload),
        "tmp_dir": config.tmp_dir,
        "uid": config.uid,
        "limits": {
            "memory_bytes": config.memory_mb << 20,
            "disk_bytes": config.disk_mb << 20,
            "cpu_s": int(config.timeout_s * config.places) + 60,
        },
    }


def _started(
    config: SandboxConfig, options: dict[str, Any], control: int, words: IO[bytes]
) -> "subprocess.Popen[bytes]":
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    folder = str(Path(__file__).parent)
    packed = marshal.dumps(options, 2).hex()
    try:
        return subprocess.Popen(
            [config.python, *_FLAGS, "-c", _START, folder, str(control), packed],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            pass_fds=[control],
            cwd="/",
            env={"LANG": "C.UTF-8", "LD_BIND_NOW": "1", **dict.fromkeys(_ONE_THREAD, "1"), **kept},
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(
            f"The sandbox's Python {config.python} cannot be run: {error}."
        ) from error
