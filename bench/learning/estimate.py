"""How long a run will take, from runs of its kind that were kept, or from what was seen once."""

import json
import statistics

from bench.learning.runs import RESULTS, Run, Side
from bench.learning.tasks import SCORE_EVERY, TASKS

#: Seconds of loading, proving and leaving weights in a run, and of loading the scorer.
APART: dict[Side, float] = {"ours": 60.0, "trl": 40.0}

#: Seconds of a step, and more of them for every token that a completion may have.
STEP: dict[Side, float] = {"ours": 1.0, "trl": 6.0}
TOKEN: dict[Side, float] = {"ours": 0.06, "trl": 0.5}

#: Seconds of scoring the weights of one step, for every token that a completion may have.
SCORED_TOKEN = 0.34


def seconds_of(run: Run) -> float:
    """Seconds that a run will take."""
    kept = [
        json.loads(path.read_text())["seconds"]["all"]
        for path in RESULTS.glob(f"{run.task}-{run.side}-*.json")
    ]
    if kept:
        return float(statistics.median(kept))
    task = TASKS[run.task]
    step = STEP[run.side] + TOKEN[run.side] * task.max_completion_tokens
    scored = (1 + task.steps / SCORE_EVERY) * SCORED_TOKEN * task.max_completion_tokens
    return APART[run.side] + task.steps * step + scored
