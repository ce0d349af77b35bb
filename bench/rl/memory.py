"""Memory over many steps: it must stay where it is once everything has been used."""

import json
import statistics

from bench.figures import Figure
from bench.rl import keeping
from bench.rl.runs import OURS, run
from bench.rl.start import start
from bench.rl.workload import TICKET_GRADER, Workload

STEPS = 200
#: Steps until allocators have seen every shape, and those whose mean is compared.
SETTLED, WINDOW = 40, 20
#: What is asked: the end is at most so many times the beginning.
MOST_TIMES = 1.02


def measure() -> list[Figure]:
    """Resident memory of the trainer around step 50 and at the end of 200 small steps."""
    workload = Workload.support(
        name="long",
        start=start("warm"),
        grader=json.loads(TICKET_GRADER.read_text()),
        steps=STEPS,
        prompts=2,
        group_size=4,
        max_tokens=32,
        learning_rate=1e-6,
    )
    found = run(OURS, workload)
    keeping.keep("memory", "long", {OURS.name: [found]})
    resident = [step.memory["resident_mib"] for step in found.steps]
    early = statistics.mean(resident[SETTLED : SETTLED + WINDOW])
    late = statistics.mean(resident[-WINDOW:])
    return [
        Figure(
            name=f"resident memory after {STEPS} steps",
            measured=late,
            floor=early,
            unit="MiB",
            floor_is=f"the same after {SETTLED + WINDOW // 2} steps",
            limit=f"at most {MOST_TIMES:g} × the floor",
            holds=late <= MOST_TIMES * early,
        )
    ]
