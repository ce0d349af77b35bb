"""Whether all contenders still run: `python -m bench.rl.smoke`, in a minute; keeps nothing."""

import sys

from bench.rl import keeping
from bench.rl.runs import OURS, PLAIN
from bench.rl.speed import TRL_DEFAULTS, compare
from bench.rl.start import start
from bench.rl.workload import NEARNESS_GRADER, Workload


def main() -> int:
    """Two steps of two prompts, four completions each, from the base model."""
    workload = Workload.support(
        name="smoke",
        start=start("base"),
        grader=NEARNESS_GRADER,
        steps=2,
        prompts=2,
        group_size=4,
        max_tokens=16,
    )
    runs = compare(workload, (OURS, PLAIN, TRL_DEFAULTS), rounds=1)
    keeping.show(runs, title="Smoke: sizes too small to say anything")
    return 0


if __name__ == "__main__":
    sys.exit(main())
