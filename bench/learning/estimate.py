"""How long a run will take, from runs of its kind that were kept, or from what was seen once."""

import json
import statistics

from bench.learning.runs import RESULTS, Run, Side
from bench.learning.tasks import BATCH_SIZE, GROUP_SIZE, TASKS

#: Seconds of loading, scoring and leaving weights in a run.
APART_FROM_STEPS: dict[Side, float] = {"ours": 60.0, "trl": 50.0}

#: Seconds of a step, and of a token of its longest completion in each group of eight.
STEP: dict[Side, float] = {"ours": 1.0, "trl": 6.0}
TOKEN: dict[Side, float] = {"ours": 0.06, "trl": 0.5}


def seconds_of(run: Run) -> float:
    """Seconds that a run will take."""
    kept = [
        json.loads(path.read_text())["seconds"]["all"]
        for path in RESULTS.glob(f"{run.task}-{run.side}-*.json")
    ]
    if kept:
        return float(statistics.median(kept))
    task = TASKS[run.task]
    share = BATCH_SIZE * GROUP_SIZE / 64
    step = STEP[run.side] + TOKEN[run.side] * task.max_completion_tokens
    return APART_FROM_STEPS[run.side] + task.steps * step * share
