"""The two pipes to whoever started the trainer: reports out, control in (JSON lines)."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any


class Channel:
    """Write reports and remember what was asked for.

    Args:
        reports: where report lines go.
        control: where control lines come from; ``None`` when nobody steers.
    """

    def __init__(self, reports: IO[str], control: IO[str] | None) -> None:
        self._reports = reports
        self._lock = threading.Lock()
        self.pause_requested = threading.Event()
        self._stored: set[str] = set()
        if control is not None:
            threading.Thread(target=self._listen, args=(control,), daemon=True).start()

    @classmethod
    def from_environment(cls) -> "Channel":
        """Take the pipes named by RFT_REPORT_FD and RFT_CONTROL_FD, or standard output and none."""
        report_fd = os.environ.pop("RFT_REPORT_FD", None)
        control_fd = os.environ.pop("RFT_CONTROL_FD", None)
        reports = os.fdopen(int(report_fd), "w") if report_fd else sys.stdout
        control = os.fdopen(int(control_fd)) if control_fd else None
        return cls(reports, control)

    def report(self, type: str, /, **fields: Any) -> None:
        """Send one report; ``allow_nan`` is off: what is not finite must be caught before."""
        line = json.dumps({"type": type, **fields}, allow_nan=False, default=_plain)
        with self._lock:
            self._reports.write(line + "\n")
            self._reports.flush()

    def was_stored(self, path: str) -> bool:
        """Whether the supervisor said that it holds this checkpoint."""
        return path in self._stored

    def _listen(self, control: IO[str]) -> None:
        for line in control:
            message = json.loads(line)
            if message["type"] == "pause":
                self.pause_requested.set()
            elif message["type"] == "checkpoint_stored":
                self._stored.add(message["path"])
        # The supervisor is gone, and with it the right to this job: another worker may hold it now.
        os._exit(1)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be reported")
