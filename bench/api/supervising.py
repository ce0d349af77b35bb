"""Supervise `bench.api.stepping` as a training worker does: `python -m bench.api.supervising`.

The settings come from the environment. It takes the one queued job and follows it to its end.
"""

import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from core.fenced import FencedWriter
from core.lease import claim
from core.settings import read_settings
from workers.context import Context
from workers.supervisor.attempt import Conduct
from workers.supervisor.heartbeat import Heartbeat
from workers.supervisor.process import TrainerProcess
from workers.supervisor.protocol import parse
from workers.supervisor.reports import Recorder


def main() -> None:
    """Claim the job, record what its trainer tells, end it."""
    context = Context.open(read_settings())
    with context.sessions.begin() as session:
        held = claim(session, owner="bench", ttl_s=60)
    if held is None:
        raise SystemExit("no job is queued")
    writer = FencedWriter(context.sessions, held.job_id, held.fence)
    beating = Heartbeat(context.sessions, held.job_id, held.fence, ttl_s=60, interval_s=1)
    with tempfile.TemporaryDirectory() as folder, beating:
        trainer = TrainerProcess(
            [sys.executable, "-m", "bench.api.stepping", folder],
            directory=Path(folder),
            environment={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        # Nothing is uploaded here, so what stores objects is left out.
        nothing: Any = None
        recorder = Recorder(writer, nothing, nothing, nothing, nothing, Path(folder))
        while not trainer.finished:
            for line in trainer.read_lines(Conduct().poll_s):
                recorder.record(parse(line))
        trainer.wait(10)
        trainer.close()
    writer.transition("succeeded")
    # The thread that tells the API of the last events ends with the process.
    threading.Event().wait(0.5)


if __name__ == "__main__":
    main()
