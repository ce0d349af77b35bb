"""The grader processes beside a trainer: the job's grader, and its monitor where it has one."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from core.judges import JudgeBook
from core.models import Job
from graders.client import start_grader_process

#: Field of the method → the variable that tells the trainer where that grader listens.
_SOCKETS = {"grader": "RFT_GRADER_SOCKET", "monitor_grader": "RFT_MONITOR_SOCKET"}


def start_graders(
    job: Job,
    judges: JudgeBook,
    directory: Path,
    *,
    environment: Mapping[str, str],
    stack: ExitStack,
) -> dict[str, str]:
    """Start what the job's method names, each with the keys of its own judges.

    Only these processes get the keys; the trainer does without. ``stack`` ends them.

    Returns:
        What the trainer's environment holds besides.

    Raises:
        GraderProcessError: a process does not come up.
    """
    block = job.method[job.method["type"]]
    found = {}
    for name, variable in _SOCKETS.items():
        if (spec := block.get(name)) is None:
            continue
        # Logs of their own: each process writes grader.log into its folder.
        folder = directory if name == "grader" else directory / "monitor"
        folder.mkdir(exist_ok=True)
        keys = judges.environment(spec)
        process = start_grader_process(spec, folder, env={**environment, **keys})
        stack.callback(process.close)
        found[variable] = str(process.socket_path)
    return found
