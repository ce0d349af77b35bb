"""The settings of TRL that were tried for speed, each for two steps: which is the fastest here."""

import dataclasses

from rich.console import Console

from bench.figures import Figure
from bench.rl import keeping
from bench.rl.runs import Run, RunFailed, run, trl
from bench.rl.speed import TRL_BEST, TRL_DEFAULTS, workloads
from bench.rl.trl_settings import SETTINGS

STEPS = 2
#: Seconds that a setting may take; the slowest that works takes a third of it.
LIMIT_S = 300.0
#: The one that is measured at length may seem slower than another by so much of chance.
MOST_TIMES = 1.05


def measure() -> list[Figure]:
    """Try all settings on the warm workload; what fails says why."""
    whole = workloads()[0]
    workload = dataclasses.replace(
        whole, name="warm, two steps", steps=STEPS, rows=whole.rows[: STEPS * whole.prompts]
    )
    runs: dict[str, list[Run]] = {}
    failures: dict[str, str] = {}
    for setting in SETTINGS:
        contender = trl(setting)
        try:
            runs[contender.name] = [run(contender, workload, limit_s=LIMIT_S)]
        except RunFailed as error:
            failures[contender.name] = str(error)
            Console().print(f"{contender.name}: {str(error).splitlines()[-1]}", markup=False)
    keeping.show(runs, title="Settings of TRL 1.16")
    keeping.keep("settings", "warm", runs, failures)
    measured = runs[TRL_BEST.name][0].completions_per_s
    best = max(its[0].completions_per_s for its in runs.values())
    return [
        Figure(
            name=f"completions with the fastest setting of TRL, {_fastest(runs)}",
            measured=best,
            floor=measured,
            unit="1/s",
            floor_is=f"{TRL_BEST.name}, which is measured beside {TRL_DEFAULTS.name}",
            limit=f"at most {MOST_TIMES:g} × the floor",
            holds=best <= MOST_TIMES * measured,
        )
    ]


def _fastest(runs: dict[str, list[Run]]) -> str:
    return max(runs, key=lambda name: runs[name][0].completions_per_s)
