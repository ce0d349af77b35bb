"""Ours, TRL and the plain loop in turns, from warm-started weights and from the base model."""

import json
import statistics
from typing import Any, Literal

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
    ours, where = runs[OURS.name], f"from the {workload} model"
    best = "TRL 1.16 at its best here"
    figures = [
        _bar(
            f"completions {where}, beside {what}",
            (_rate(ours), _rate(runs[other.name]), "1/s"),
            ("at least", times, what),
        )
        for other, times, what in (
            (TRL_DEFAULTS, TIMES_TRL, "TRL 1.16 with its defaults"),
            (TRL_BEST, TIMES_TRL, best),
            (PLAIN, TIMES_PLAIN, "a plain loop with the same sampler"),
        )
    ]
    work = statistics.median(map(update_tflops, ours))
    peak = max(r.notes["peak_tflops"] for r in ours)
    products = "the machine's peak in bfloat16 products of the model's shapes"
    step = statistics.median(r.seconds / len(r.steps) for r in ours)
    other = step - statistics.median(r.phase("sampling") + r.phase("updating") for r in ours)
    memory, memory_of_trl = (
        max(sum(r.peaks_mib) for r in its) for its in (ours, runs[TRL_BEST.name])
    )
    return [
        *figures,
        _bar(f"update {where}", (work, peak, "TFLOP/s"), ("at least", SHARE_OF_PEAK, products)),
        _bar(
            f"neither sampling nor update {where}",
            (other, step, "s"),
            ("at most", SHARE_OF_OTHER, "a step"),
        ),
        _bar(
            f"peak memory {where}",
            (memory, memory_of_trl, "MiB"),
            ("at most", SHARE_OF_MEMORY, best),
        ),
    ]


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


def _bar(
    name: str,
    found: tuple[float, float, str],
    asked: tuple[Literal["at least", "at most"], float, str],
) -> Figure:
    """A figure from (measured, floor, unit) and (direction, times the floor, what the floor is)."""
    (measured, floor, unit), (direction, times, floor_is) = found, asked
    bar = times * floor
    return Figure(
        name=name,
        measured=measured,
        floor=floor,
        unit=unit,
        floor_is=floor_is,
        limit=f"{direction} {times:g} × {floor_is}",
        holds=measured >= bar if direction == "at least" else measured <= bar,
    )
