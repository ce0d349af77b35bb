"""Looking at processes from outside."""

import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether the process exists and has not ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def running(pids: list[int]) -> list[int]:
    """Those of the processes that have not ended."""
    return [pid for pid in pids if is_running(pid)]


def await_gone(pids: list[int], *, timeout_s: float = 20) -> None:
    """Fail when one of the processes does not end."""
    deadline = time.monotonic() + timeout_s
    while alive := running(pids):
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.02)
