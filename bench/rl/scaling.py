"""How a step's cost grows with its prompts, the group's size, and the completions' length."""

import dataclasses

from bench.figures import Figure
from bench.rl import keeping
from bench.rl.runs import OURS, Run, run
from bench.rl.start import start
from bench.rl.workload import NEARNESS_GRADER, Workload

#: From the base model nearly every completion runs to the cap, so sizes are what they say.
MIDDLE = {"prompts": 8, "group_size": 8, "max_tokens": 64}
AXES = {"prompts": (4, 8, 16), "group_size": (4, 8, 16), "max_tokens": (32, 64, 128)}
STEPS = 3
#: Linear means: so many times larger costs at most so many times more, and this.
MOST_TIMES = 1.15


def measure() -> list[Figure]:
    """Seconds of a step along each axis, the other two in the middle."""
    runs: dict[str, Run] = {}
    for axis, sizes in AXES.items():
        for size in sizes:
            chosen = {**MIDDLE, axis: size}
            if _name(chosen) not in runs:
                runs[_name(chosen)] = run(OURS, _workload(chosen))
    keeping.show({name: [each] for name, each in runs.items()}, title="prompts × group × length")
    keeping.keep("scaling", "base", {name: [each] for name, each in runs.items()})
    return [_figure(axis, runs) for axis in AXES]


def _workload(sizes: dict[str, int]) -> Workload:
    workload = Workload.support(
        name="base", start=start("base"), grader=NEARNESS_GRADER, steps=STEPS, **sizes
    )
    return dataclasses.replace(workload, name=_name(sizes))


def _name(sizes: dict[str, int]) -> str:
    return " × ".join(str(sizes[axis]) for axis in AXES)


def _figure(axis: str, runs: dict[str, Run]) -> Figure:
    least, most = min(AXES[axis]), max(AXES[axis])
    small, large = (runs[_name({**MIDDLE, axis: size})] for size in (least, most))
    expected = small.seconds / len(small.steps) * most / least
    measured = large.seconds / len(large.steps)
    return Figure(
        name=f"a step with {axis} {most} (others in the middle)",
        measured=measured,
        floor=expected,
        unit="s",
        floor_is=f"{most // least} × a step with {axis} {least}",
        limit=f"at most {MOST_TIMES:g} × the floor",
        holds=measured <= MOST_TIMES * expected,
    )
