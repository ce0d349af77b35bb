"""What a contender notes about its own steps, and the file that it leaves.

Standard library only: contenders run in different environments.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Step:
    """One optimiser step; ``phases`` are seconds of ``seconds``, what they leave is other work.

    ``prompt_tokens`` count each distinct prompt once. ``trained`` and the tokens beside it count
    what went through the backward pass: completions that carry no gradient may be left out of it.
    ``memory`` is looked at when the step ends.
    """

    seconds: float
    phases: dict[str, float]
    completions: int
    completion_tokens: int
    prompt_tokens: int
    truncated: int
    reward: float | None
    trained: int
    trained_completion_tokens: int
    trained_prompt_tokens: int
    memory: dict[str, Any]


@dataclass
class Recorder:
    """Times phases of the step that is going on; a phase inside another is counted there only."""

    steps: list[Step] = field(default_factory=list)
    _phases: dict[str, float] = field(default_factory=dict)
    _open: list[float] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside for a phase, without that of phases inside of it."""
        began = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            inner = self._open.pop()
            self._phases[name] = self._phases.get(name, 0.0) + seconds - inner
            if self._open:
                self._open[-1] += seconds

    def begin(self) -> None:
        """The first step begins now; what came before is not counted."""
        self._phases, self._began = {}, time.perf_counter()

    def end_step(self, **counts: Any) -> None:
        """Close the step: everything since the last one, or since :meth:`begin`; the log has it."""
        now = time.perf_counter()
        seconds, phases = now - self._began, self._phases
        self.steps.append(Step(seconds=seconds, phases=phases, memory=memory(), **counts))
        sys.stdout.write(json.dumps(dataclasses.asdict(self.steps[-1])) + "\n")
        sys.stdout.flush()
        self._phases, self._began = {}, now


def write(path: Path, steps: list[Step], **notes: Any) -> None:
    """Leave the record of a run."""
    path.write_text(json.dumps({"steps": [dataclasses.asdict(s) for s in steps], "notes": notes}))


def memory() -> dict[str, Any]:
    """Resident memory of this process in MiB, and the peaks of it and of all that it started."""
    own, *others = _tree(os.getpid())
    peaks = [_status_mib(pid, "VmHWM") for pid in others]
    return {
        "resident_mib": _status_mib(own, "VmRSS"),
        "peaks_mib": [_status_mib(own, "VmHWM"), *sorted(peaks, reverse=True)],
    }


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += map(int, _read(children).split())
    return found


def _status_mib(pid: int, name: str) -> float:
    lines = _read(Path(f"/proc/{pid}/status")).splitlines()
    found = [line for line in lines if line.startswith(f"{name}:")]
    # A process that has ended has no memory.
    return int(found[0].split()[1]) / 1024 if found else 0.0


def _read(path: Path) -> str:
    """The text of a file of a process or thread; nothing when that has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
