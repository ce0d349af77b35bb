"""What a run of `rft-server` in this process gave."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Result:
    """Exit code and output."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]
