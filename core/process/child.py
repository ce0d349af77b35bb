"""One supervised child process with a log file of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.process.guard import descendants

_GUARD = Path(__file__).with_name("guard.py")
#: A log larger than this is set aside as `NAME.log.1` at the next start.
_LOG_LIMIT_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """What to run.

    `is_ready` is asked until it says yes, for at most `ready_s` seconds; a child without it counts
    as ready once started. `grace_s` is the time between SIGTERM and SIGKILL when it is stopped.
    `env` is all that the command sees; None passes on this process's environment.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] | None = None
    is_ready: Callable[[], bool] | None = None
    ready_s: float = 60.0
    grace_s: float = 10.0


class Child:
    """Runs a spec under the guard, again and again if asked.

    Start it from a thread that outlives it: the kernel stops it when that thread ends.

    Args:
        keep_open: descriptors that the guard holds for as long as anything of the child lives.
    """

    def __init__(self, spec: ChildSpec, log: Path, *, keep_open: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self.log = log
        self._keep_open = keep_open
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command; its output is appended to the log."""
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_name(self.log.name + ".1"))
        # Isolated and without site: the guard needs the standard library only.
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(self.spec.grace_s), str(os.getpid())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*guard, *self.spec.command],
                env=self.spec.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self._keep_open,
            )

    def exit_code(self) -> int | None:
        """Return how the command ended, or None while it runs (or was never started)."""
        return self._process.poll() if self._process else None

    def ask_to_stop(self) -> None:
        """Send SIGTERM; the guard sees to the rest."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Return when nothing of the child is left; after `ask_to_stop` the wait is bounded."""
        if self._process:
            self._process.wait()

    def pids(self) -> list[int]:
        """Return the process ids of the command and everything below it."""
        if self._process is None or self._process.poll() is not None:
            return []
        return descendants(self._process.pid)

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 16_384))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])


def describe_exit(code: int) -> str:
    """Say in words how a command ended."""
    if code > 128:
        return f"was killed by {signal.Signals(code - 128).name}"
    return f"ended with exit code {code}"
