"""Start a program that dies with its parent: ``python launch.py PARENT_PID COMMAND…``.

A worker killed by ``kill -9`` cannot end its trainer; the kernel does it. The request to the
kernel is made here, in a fresh process, because code between fork and exec of a threaded worker
may deadlock.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for SIGKILL at the parent's death, then become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The parent may have died before the request was made.
    if os.getppid() != parent:
        raise SystemExit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
