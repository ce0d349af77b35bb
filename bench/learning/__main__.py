"""Learn the tasks with both trainers: `python -m bench.learning [--tasks …] [--seeds 1 2 3]`.

Says how long it will take, then carries out what is not in `bench/results/learning/` yet; it may be
stopped at any time and goes on where it was. `--estimate` only says how long.
"""

import argparse
import sys
from datetime import datetime, timedelta

from rich.console import Console

from bench.learning.estimate import seconds_of
from bench.learning.runs import Run, RunFailed, carry_out, planned
from bench.learning.tasks import TASKS
from bench.learning.trainer_process import TrainerFailed


def main() -> int:
    """Carry out the missing runs; stops at the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--estimate", action="store_true", help="only say how long it will take")
    parser.add_argument("--again", action="store_true", help="also what has been measured before")
    args = parser.parse_args()
    out = Console(highlight=False)
    runs = planned(args.tasks, args.seeds)
    missing = runs if args.again else [run for run in runs if not run.kept]
    left = sum(map(seconds_of, missing))
    out.print(f"{len(missing)} of {len(runs)} runs are left, about {_minutes(left)} in all.")
    if args.estimate:
        return 0
    for number, run in enumerate(missing, start=1):
        left = sum(map(seconds_of, missing[number - 1 :]))
        end = datetime.now() + timedelta(seconds=left)
        out.print(f"{number}/{len(missing)}  {run.name}: all done at about {end:%H:%M}")
        try:
            _carry_out(run, out)
        except (TrainerFailed, RunFailed) as error:
            out.print(f"{run.name} failed: {error}", markup=False, style="red")
            return 1
    return 0


def _carry_out(run: Run, out: Console) -> None:
    scores = carry_out(run)
    shown = "  ".join(f"{entry['step']}: {entry['score']:.3f}" for entry in scores)
    out.print(f"      held-out score by step  {shown}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes"


if __name__ == "__main__":
    sys.exit(main())
