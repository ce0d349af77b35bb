"""What a sandbox is: a place to run user code in that can reach nothing.

A tier is one class with this interface. `process` is here; others, as gVisor or a remote service,
can come without a change for those who call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from graders.outcome import Failure, Score


class SandboxError(Exception):
    """The sandbox cannot be had, or broke; the message is a sentence with the way out."""


@dataclass(frozen=True)
class Program:
    """A grader's source, and the modules that it imports."""

    source: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """What one call came to.

    `output` is what the code printed, cut; `refused` counts the system calls that were refused,
    by name, as far as the kernel reports them.
    """

    outcome: Score | Failure
    output: str = ""
    refused: Mapping[str, int] = field(default_factory=dict)


class Sandbox(Protocol):
    """Runs `grade(sample, item)` of user code, each call cut off from everything else."""

    @property
    def places(self) -> int:
        """How many calls run at the same time; further ones wait, first come first served."""

    def prepare(self, program: Program) -> None:
        """Announce a program, so that what it imports is loaded once; runs nothing of it."""

    async def run(self, program: Program, sample: dict[str, Any], item: dict[str, Any]) -> Ran:
        """Run one call; raises `SandboxError` when it could not be run at all."""

    async def close(self) -> None:
        """End what runs and remove what was written."""
