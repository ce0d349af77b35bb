"""Connections to the grader processes: those that the supervisor started, or ones of our own."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from graders.client import GraderClient, start_grader_process
from trainer.spec import TrainSpec


def connect_grader(spec: TrainSpec, job_dir: Path, stack: ExitStack) -> GraderClient:
    """The job's grader; ``stack`` ends the connection, and a process that was started here."""
    return _connect("RFT_GRADER_SOCKET", spec.reinforcement.grader, job_dir, stack)


def connect_monitor(spec: TrainSpec, job_dir: Path, stack: ExitStack) -> GraderClient | None:
    """The grader that only watches validation, if the job has one."""
    grader = spec.reinforcement.monitor_grader
    if grader is None:
        return None
    # A folder of its own: each process writes grader.log into its folder.
    folder = job_dir / "monitor"
    folder.mkdir(exist_ok=True)
    return _connect("RFT_MONITOR_SOCKET", grader, folder, stack)


def _connect(variable: str, grader: dict[str, Any], folder: Path, stack: ExitStack) -> GraderClient:
    path = os.environ.get(variable)
    if path is not None:
        client = GraderClient(path)
        stack.callback(client.close)
        return client
    process = start_grader_process(grader, folder)
    stack.callback(process.close)
    return process.client
