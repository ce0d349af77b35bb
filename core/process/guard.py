"""Run a command and leave nothing of it behind: ``python guard.py GRACE_S PARENT_PID COMMAND…``.

Every server that the service starts runs under one of these. On SIGTERM, and when its parent dies
in any way (``kill -9`` too), the guard asks the command to end, waits GRACE_S seconds and kills
what is left of it, grandchildren in sessions of their own included. It exits as the command did.

Standard library only: it is started as a plain file, in milliseconds.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

#: Signals that mean "stop"; SIGCHLD only wakes the loop.
STOP = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
WATCHED = STOP | {signal.SIGCHLD}
#: Longest sleep between two looks at the clock, in seconds.
_TICK_S = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Guard one command until it has ended; return the exit code to pass on."""
    grace_s, parent, command = float(arguments[0]), int(arguments[1]), arguments[2:]
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    # A parent that ignores SIGCHLD passes that on, and exit codes would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Orphans of the command become children of the guard, so it can find and end them.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the request to the kernel
        return 1
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=_prepare_command)
    code = _watch(process.pid, grace_s)
    _end_descendants()
    return code


def _prepare_command() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(pid: int, grace_s: float) -> int:
    """Wait for the command; after a stop signal it gets SIGTERM and, when time is up, SIGKILL."""
    deadline: float | None = None
    while True:
        code = _reap(pid)
        if code is not None:
            return code
        caught = signal.sigtimedwait(WATCHED, _TICK_S)
        if caught is not None and caught.si_signo in STOP and deadline is None:
            # Only the leader is told: it knows best how to end its own children.
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
        if deadline is not None and time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)


def _reap(pid: int) -> int | None:
    """Collect ended children; the exit code of the command once it has ended."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if ended == 0:
            return None


def _end_descendants() -> None:
    """Kill every process below this one, until there is none; forks in between are caught."""
    while pids := descendants(os.getpid()):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reap(-1)
        time.sleep(0.01)


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below `root`, zombies excluded."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)):
            children.setdefault(parent, []).append(int(entry.name))
    found, frontier = [], [root]
    while frontier:
        below = children.get(frontier.pop(), [])
        found += below
        frontier += below
    return found


def _parent(process: Path) -> int | None:
    try:
        # The command name in parentheses may itself hold spaces and parentheses.
        state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(parent)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
