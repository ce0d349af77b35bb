"""How long a job may go on once its worker is told to end."""

import threading
import time


class WorkerStopping(Exception):
    """The time is over in which this worker could still have finished what it is at."""


class Grace:
    """Counts from the first look at which the worker was told to end.

    Whoever stops the worker kills it some time later. A job that is still held then counts as one
    that brought its worker down, so it is given back before.

    Args:
        stopping: set when the worker is told to end.
        trainer_s: seconds for the trainer to store a checkpoint and exit.
        uploads_s: further seconds for what it wrote to be stored.
    """

    def __init__(self, stopping: threading.Event, *, trainer_s: float, uploads_s: float) -> None:
        self._stopping = stopping
        self._trainer_s, self._uploads_s = trainer_s, trainer_s + uploads_s
        self._since: float | None = None

    def trainer_is_over(self) -> bool:
        """Whether the trainer must go."""
        return self._elapsed() >= self._trainer_s

    def uploads_are_over(self) -> bool:
        """Whether uploads must be given up."""
        return self._elapsed() >= self._uploads_s

    def _elapsed(self) -> float:
        if self._since is None:
            if not self._stopping.is_set():
                return -1.0
            self._since = time.monotonic()
        return time.monotonic() - self._since
