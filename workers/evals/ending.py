"""How a run ends before its last item."""


class RunFailed(Exception):
    """The run cannot go on; `code` and the sentence become its `error`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class WorkerStopping(Exception):
    """This worker shuts down: the run goes back to the queue."""


class TryAgain(Exception):
    """Something here broke that may hold elsewhere: the run goes back, counted as an attempt."""
