"""The trainer as a child process: two pipes, a clean environment, a certain end."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_LAUNCHER = Path(__file__).with_name("launch.py")
_READ_BYTES = 1 << 16
#: Seconds between two looks at whether a trainer may still take its time to exit.
_LOOK_S = 0.2


class TrainerProcess:
    """A running trainer.

    It leads a process group of its own, so that everything it starts ends with it, and the kernel
    kills it when this process dies.

    Args:
        command: program and arguments.
        directory: where it runs; its output goes to ``trainer.log`` there.
        environment: everything it sees, but for the names of the two pipes.
    """

    def __init__(
        self, command: list[str], *, directory: Path, environment: Mapping[str, str]
    ) -> None:
        self._log_path = directory / "trainer.log"
        self._reports, reports_in = os.pipe()
        control_out, self._control = os.pipe()
        try:
            with self._log_path.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, str(_LAUNCHER), str(os.getpid()), *command],
                    cwd=directory,
                    env={
                        **environment,
                        "RFT_REPORT_FD": str(reports_in),
                        "RFT_CONTROL_FD": str(control_out),
                    },
                    pass_fds=(reports_in, control_out),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError:
            os.close(self._reports)
            os.close(self._control)
            raise
        finally:
            os.close(reports_in)
            os.close(control_out)
        self.pid = self._process.pid
        self._sending, self._closed = threading.Lock(), False
        self._pending = b""
        self.finished = False

    def read_lines(self, timeout_s: float) -> Iterator[bytes]:
        """Whole lines that arrived within ``timeout_s``; sets ``finished`` at the end of the pipe.

        A line cut off by the trainer's death is dropped.
        """
        if self.finished or not select.select([self._reports], [], [], timeout_s)[0]:
            return
        data = os.read(self._reports, _READ_BYTES)
        if not data:
            self.finished = True
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        yield from lines

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one control line; a trainer that is gone does not hear it."""
        line = json.dumps(message).encode() + b"\n"
        # The lock: an upload that nobody waits for may come after the end, when the number of the
        # descriptor belongs to something else.
        with self._sending:
            if self._closed:
                return
            try:
                os.write(self._control, line)
            except BrokenPipeError:
                return

    def wait(self, timeout_s: float, *, keep_on: Callable[[], bool] = lambda: True) -> int:
        """The exit code (negative: killed by that signal).

        What does not end in time, or until ``keep_on`` says no, is killed.
        """
        if self._process.returncode is not None:
            return self._process.returncode
        deadline = time.monotonic() + timeout_s
        watch = os.pidfd_open(self.pid)
        try:
            while (left := deadline - time.monotonic()) > 0 and keep_on():
                if select.select([watch], [], [], min(left, _LOOK_S))[0]:
                    break
        finally:
            os.close(watch)
        return self.kill()

    def kill(self) -> int:
        """End the trainer and everything that it started, at once; returns its exit code."""
        if self._process.returncode is None:
            # Before the leader is reaped: until then the kernel gives its id to no other group.
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def close(self) -> None:
        """Close the pipes; the trainer has ended."""
        with self._sending:
            self._closed = True
            os.close(self._reports)
            os.close(self._control)

    def log_tail(self, size: int = 4000) -> str:
        """The last ``size`` bytes of what the trainer printed."""
        data = self._log_path.read_bytes()[-size:]
        return data.decode(errors="replace")
