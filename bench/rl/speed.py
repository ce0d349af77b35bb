"""Ours, TRL and the plain loop in turns, from warm-started weights and from the base model."""

import json
import statistics
from typing import Any

from rich.console import Console

from bench.figures import Figure
from bench.rl import keeping
from bench.rl.runs import OURS, OURS_AHEAD, PLAIN, Contender, Run, run, trl
from bench.rl.start import start
from bench.rl.workload import NEARNESS_GRADER, TICKET_GRADER, Workload

#: The settings in which TRL is measured: its own, and the fastest of those that were tried.
TRL_DEFAULTS, TRL_BEST = trl("defaults"), trl("no_checkpointing")
CONTENDERS = (OURS, PLAIN, TRL_DEFAULTS, TRL_BEST, OURS_AHEAD)
#: Steps of a run, the first of which is not counted, and how often each contender has its turn.
STEPS, ROUNDS = 4, 2
PROMPTS, GROUP_SIZE, MAX_TOKENS = 8, 8, 128

#: What is asked of ours.
TIMES_TRL, TIMES_PLAIN = 8.0, 2.5
SHARE_OF_PEAK, SHARE_OF_OTHER, SHARE_OF_MEMORY = 0.35, 0.08, 0.6

#: Floating-point operations for a token and a parameter, forward and backward.
OPERATIONS = 6


def workloads() -> list[Workload]:
    """From warm-started weights, whose answers are short tickets; and from the base model.

    The base model writes no ticket and seldom ends before the cap. There the grader is one that
    tells any two texts apart, so that no contender may leave a group out.
    """
    sizes: dict[str, Any] = {
        "steps": STEPS,
        "prompts": PROMPTS,
        "group_size": GROUP_SIZE,
        "max_tokens": MAX_TOKENS,
    }
    ticket = json.loads(TICKET_GRADER.read_text())
    return [
        Workload.support(name="warm", start=start("warm"), grader=ticket, **sizes),
        Workload.support(name="base", start=start("base"), grader=NEARNESS_GRADER, **sizes),
    ]


def measure() -> list[Figure]:
    """All contenders on both workloads, in turns; a table of phases on the way."""
    figures: list[Figure] = []
    for workload in workloads():
        runs = compare(workload, CONTENDERS, rounds=ROUNDS)
        keeping.show(runs, title=f"One step from the {workload.name} model")
        keeping.keep("speed", workload.name, runs)
        figures += figures_of(runs, workload.name)
    return figures


def compare(
    workload: Workload, contenders: tuple[Contender, ...], *, rounds: int
) -> dict[str, list[Run]]:
    """The runs of each contender; they take turns, so that a busy minute hits all of them."""
    runs: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            found = run(contender, workload)
            runs[contender.name].append(found)
            rate = f"{found.completions_per_s:.2f} completions/s"
            Console().print(f"{workload.name}: {contender.name}, {rate}", highlight=False)
    return runs


def figures_of(runs: dict[str, list[Run]], workload: str) -> list[Figure]:
    """What was asked of ours, from the runs on one workload."""
    ours = runs[OURS.name]
    where = f"from the {workload} model"
    rate = _rate(ours)
    figures = [
        _at_least(
            f"completions {where}, beside {what}", rate, _rate(runs[other.name]), "1/s", times, what
        )
        for other, times, what in (
            (TRL_DEFAULTS, TIMES_TRL, "TRL 1.16 with its defaults"),
            (TRL_BEST, TIMES_TRL, "TRL 1.16 at its best here"),
            (PLAIN, TIMES_PLAIN, "a plain loop with the same sampler"),
        )
    ]
    figures.append(
        _at_least(
            f"update {where}",
            statistics.median(map(update_tflops, ours)),
            max(r.notes["peak_tflops"] for r in ours),
            "TFLOP/s",
            SHARE_OF_PEAK,
            "the machine's peak in bfloat16 products of the model's shapes",
        )
    )
    step = statistics.median(r.seconds / len(r.steps) for r in ours)
    other = step - statistics.median(r.phase("sampling") + r.phase("updating") for r in ours)
    figures.append(
        _at_most(f"neither sampling nor update {where}", other, step, "s", SHARE_OF_OTHER, "a step")
    )
    memory = max(sum(r.peaks_mib) for r in ours)
    trl_memory = max(sum(r.peaks_mib) for r in runs[TRL_DEFAULTS.name])
    figures.append(
        _at_most(
            f"peak memory {where}",
            memory,
            trl_memory,
            "MiB",
            SHARE_OF_MEMORY,
            "TRL 1.16 with its defaults",
        )
    )
    return figures


def update_tflops(run: Run) -> float:
    """Useful work of the updates over their seconds.

    Useful are 6 operations for each parameter and token: completion tokens once, each distinct
    prompt once, and only what was trained on.
    """
    tokens = sum(s.trained_completion_tokens + s.trained_prompt_tokens for s in run.steps)
    seconds = run.phase("updating") * len(run.steps)
    return float(OPERATIONS * run.notes["parameters"] * tokens / seconds / 1e12)


def _rate(runs: list[Run]) -> float:
    return sum(s.completions for r in runs for s in r.steps) / sum(r.seconds for r in runs)


def _at_least(
    name: str, measured: float, floor: float, unit: str, times: float, floor_is: str
) -> Figure:
    return Figure(
        name=name,
        measured=measured,
        floor=floor,
        unit=unit,
        floor_is=floor_is,
        limit=f"at least {times:g} × {floor_is}",
        holds=measured >= times * floor,
    )


def _at_most(
    name: str, measured: float, floor: float, unit: str, times: float, floor_is: str
) -> Figure:
    return Figure(
        name=name,
        measured=measured,
        floor=floor,
        unit=unit,
        floor_is=floor_is,
        limit=f"at most {times:g} × {floor_is}",
        holds=measured <= times * floor,
    )
