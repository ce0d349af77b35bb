"""The type of the `make_job` fixture."""

from collections.abc import Callable

#: Inserts a job with the given columns and returns its id.
MakeJob = Callable[..., str]
