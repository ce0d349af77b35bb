"""Learn the tasks with both trainers: `python -m bench.learning [--tasks …] [--seeds 1 2 3]`.

Says how long it will take, then carries out what is not in `bench/results/learning/` yet; it may be
stopped at any time and goes on where it was. `--estimate` only says how long; `--starts` shows what
the starts leave to learn.
"""

import argparse
import sys
from datetime import datetime, timedelta

from rich.console import Console

from bench.learning.estimate import seconds_of
from bench.learning.runs import RESULTS, Run, RunFailed, carry_out, planned, score_start
from bench.learning.tasks import TASKS
from bench.learning.trainer_process import TrainerFailed
from bench.report.learning import comparisons, verdict


def main() -> int:
    """Carry out the missing runs; 1 when one fails, or when ours learns less than TRL's."""
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--estimate", action="store_true", help="only say how long it will take")
    parser.add_argument("--starts", action="store_true", help="only make and score the starts")
    parser.add_argument("--again", action="store_true", help="also what has been measured before")
    args = parser.parse_args()
    out = Console(highlight=False)
    if args.starts:
        for task in args.tasks:
            scores = score_start(task)
            out.print(f"{task}: sampled {scores['score']:.3f}, greedy {scores['greedy']:.3f}")
        return 0
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
    found, _ = comparisons(RESULTS)
    for each in found:
        out.print(verdict(each), markup=False)
    out.print("`make bench-report` puts it into docs/benchmarks.md.")
    return 1 if any(each.below_at for each in found) else 0


def _carry_out(run: Run, out: Console) -> None:
    scores = carry_out(run)
    shown = "  ".join(f"{entry['step']}: {entry['score']:.3f}" for entry in scores)
    out.print(f"      held-out score by step  {shown}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes"


if __name__ == "__main__":
    sys.exit(main())
