"""What the engine adds to a grader that only computes."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.figures import Figure
from graders.engine import Engine
from graders.paths import Context
from graders.template import Template

CALLS = 20_000
ROUNDS = 9
#: What is asked: at most so many times the bare function, and never more microseconds than that.
MOST_TIMES, MOST_US = 3.0, 60.0

SPEC = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}
MULTI = {
    "type": "multi",
    "name": "both",
    "graders": {"exact": SPEC, "contains": {**SPEC, "operation": "ilike"}},
    "calculate_output": "0.5 * exact + 0.5 * contains",
}
SAMPLE = {
    "output_text": "The capital of France is Paris.",
    "output_tools": [],
    "choices": [{"index": 0, "finish_reason": "stop"}],
}
ITEM = {"answer": "The capital of France is Paris.", "topic": "geography"}


def measure() -> list[Figure]:
    """One grade in microseconds: the fastest of several rounds, taken in turns with its floor."""
    floor, single, several = fastest(_bare(), _through(Engine(SPEC)), _through(Engine(MULTI)))
    limit = f"at most {MOST_TIMES:g} × the floor and {MOST_US:g} µs"
    bare = "the same templates and comparison as a plain function"
    return [
        Figure(
            name="string_check through the engine",
            measured=single,
            floor=floor,
            unit="µs per grade",
            floor_is=bare,
            limit=limit,
            holds=single <= min(MOST_TIMES * floor, MOST_US),
        ),
        Figure(
            name="multi of two string_checks",
            measured=several,
            floor=2 * floor,
            unit="µs per grade",
            floor_is=f"twice {bare}",
            limit=f"at most {MOST_US:g} µs",
            holds=several <= MOST_US,
        ),
    ]


def fastest(*rounds: Callable[[], float]) -> list[float]:
    """The fastest round of each, in microseconds, after one that warms up."""
    for one_round in rounds:
        one_round()
    # In turns, so that whatever slows the machine down for a while slows all of them.
    times = [[one_round() for one_round in rounds] for _ in range(ROUNDS)]
    return [1e6 * min(each) for each in zip(*times, strict=True)]


def _bare() -> Callable[[], float]:
    left, right = Template.parse(SPEC["input"]), Template.parse(SPEC["reference"])

    def bare(sample: dict[str, Any], item: dict[str, Any]) -> float:
        context = Context(sample, item)
        return float(left.render(context) == right.render(context))

    def one_round() -> float:
        started = time.perf_counter()
        for _ in range(CALLS):
            bare(SAMPLE, ITEM)
        return (time.perf_counter() - started) / CALLS

    return one_round


def _through(engine: Engine) -> Callable[[], float]:
    async def grade() -> float:
        started = time.perf_counter()
        for _ in range(CALLS):
            await engine.grade(SAMPLE, ITEM)
        return (time.perf_counter() - started) / CALLS

    return lambda: asyncio.run(grade())
