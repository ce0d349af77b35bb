"""One contender on one workload, in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environment import comparison_python
from bench.machine import ROOT
from bench.rl.record import Step
from bench.rl.workload import Workload

#: Seconds that a run may take.
LIMIT_S = 1800.0
LOGS = ROOT / ".bench" / "rl" / "logs"


@dataclass(frozen=True)
class Contender:
    """A module of `bench.rl` that takes a workload and a record, and further arguments.

    One to compare with runs in the environment that holds it.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    compared: bool = False


OURS = Contender("ours", "ours")
OURS_AHEAD = Contender("ours, sampling ahead", "ours", ("--max-staleness", "1"))
PLAIN = Contender("plain loop", "plain")


def trl(setting: str) -> Contender:
    """TRL with one of the settings of `bench.rl.with_trl`."""
    return Contender(f"TRL {setting}", "with_trl", (setting,), compared=True)


class RunFailed(RuntimeError):
    """A contender ended early; the message ends with the last lines that it wrote."""


@dataclass(frozen=True)
class Run:
    """What came of a run: its measured steps, and what the contender added to them."""

    contender: str
    workload: str
    steps: list[Step]
    notes: dict[str, Any]

    @property
    def seconds(self) -> float:
        """Seconds of the measured steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def completions_per_s(self) -> float:
        """Completions over seconds, all measured steps together."""
        return sum(step.completions for step in self.steps) / self.seconds

    @property
    def peaks_mib(self) -> list[float]:
        """The largest resident sizes of the run's processes, the contender itself first."""
        peaks: list[float] = self.steps[-1].memory["peaks_mib"]
        return peaks

    def phase(self, name: str) -> float:
        """Mean seconds a step of one phase, or of what is in none of them: ``other``."""
        if name == "other":
            inside = sum(sum(step.phases.values()) for step in self.steps)
            return max(0.0, self.seconds - inside) / len(self.steps)
        return sum(step.phases.get(name, 0.0) for step in self.steps) / len(self.steps)

    def mean(self, field: str) -> float:
        """Mean of a count over the measured steps."""
        return float(sum(getattr(step, field) for step in self.steps)) / len(self.steps)


def run(contender: Contender, workload: Workload, *, limit_s: float = LIMIT_S) -> Run:
    """Run a contender to its end.

    Raises:
        RunFailed: it ended with an error, or had to be ended; its log stays in `.bench/rl/logs`.
        EnvironmentMissing: see :func:`bench.environment.comparison_python`.
    """
    python = comparison_python() if contender.compared else sys.executable
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{contender.name} on {workload.name}.log".replace(" ", "-")
    with tempfile.TemporaryDirectory(prefix="rft-bench-") as folder:
        given, record = Path(folder) / "workload.json", Path(folder) / "record.json"
        workload.write(given)
        command = [python, "-m", f"bench.rl.{contender.module}"]
        command += [str(given), str(record), *contender.arguments]
        ending = _run(command, log, limit_s)
        if ending is not None:
            last = log.read_text(errors="replace").strip()[-1500:]
            raise RunFailed(f"{contender.name} on {workload.name} {ending}:\n{last}")
        found = json.loads(record.read_text())
    steps = [Step(**step) for step in found["steps"]][workload.unmeasured_steps :]
    return Run(contender.name, workload.name, steps, found["notes"])


def _run(command: list[str], log: Path, limit_s: float) -> str | None:
    """Run a command; returns how it ended when it did not end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as out:
        try:
            code = subprocess.run(
                command,
                cwd=ROOT,
                stdout=out,
                stderr=out,
                env=environment,
                timeout=limit_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"took longer than {limit_s:.0f} s"
    return None if code == 0 else f"ended with code {code}"
