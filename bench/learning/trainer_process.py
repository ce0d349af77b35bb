"""Run `python -m trainer` on a job directory as the supervisor does, and follow its reports."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.machine import ROOT


class TrainerFailed(RuntimeError):
    """The trainer ended early; the message is its last report or the end of its log."""


class TrainerProcess:
    """A trainer on one job directory, with a pipe for its reports and one to it."""

    def __init__(self, job_dir: Path) -> None:
        self._log = job_dir / "trainer.log"
        report_out, report_in = os.pipe()
        control_out, control_in = os.pipe()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trainer", str(job_dir)],
                cwd=ROOT,
                env={
                    **os.environ,
                    "RFT_REPORT_FD": str(report_in),
                    "RFT_CONTROL_FD": str(control_out),
                },
                pass_fds=(report_in, control_out),
                stdout=log,
                stderr=log,
            )
        os.close(report_in)
        os.close(control_out)
        self._reports = os.fdopen(report_out)
        self._control = os.fdopen(control_in, "w")

    def follow(self, told: Callable[[dict[str, Any]], None]) -> None:
        """Pass every report on until the job is done.

        Raises:
            TrainerFailed: it ended in another way.
        """
        last: dict[str, Any] = {}
        with self._reports:
            for line in self._reports:
                last = json.loads(line)
                told(last)
        code = self._process.wait()
        # Held open until now: a trainer whose control pipe ends takes itself for abandoned.
        self._control.close()
        if code != 0 or last.get("reason") != "done":
            told_last = last.get("message") or self._log.read_text(errors="replace")[-2000:]
            raise TrainerFailed(f"The trainer ended with code {code}: {told_last}")

    def stored(self, path: str) -> None:
        """Say that a checkpoint is held elsewhere now, so that it may be deleted."""
        self._control.write(json.dumps({"type": "checkpoint_stored", "path": path}) + "\n")
        self._control.flush()
