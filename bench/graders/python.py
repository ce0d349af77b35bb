"""A python grader at full isolation, beside a fresh interpreter per call."""

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.figures import Figure
from graders.engine import Engine
from graders.outcome import Score

#: What is asked: so many times the rate of a fresh interpreter per call, and the slowest of a
#: hundred calls within so many milliseconds.
LEAST_TIMES, MOST_P99_MS = 20.0, 5.0
CALLS, FLOOR_CALLS, ROUNDS = 300, 16, 6

SOURCE = """
def grade(sample, item):
    got, want = sample["output_text"].split(), item["words"]
    return sum(word in got for word in want) / len(want)
"""
SAMPLE = {
    "output_text": "the quick brown fox jumps over the lazy dog",
    "choices": [{"index": 0, "finish_reason": "stop"}],
}
ITEM = {"words": ["fox", "dog", "cat", "cow"]}
#: The same grade by a program: sample and item on standard input, the score on standard output.
PROGRAM = f"""
import json, sys
{SOURCE}
print(grade(*json.load(sys.stdin)))
"""


def measure() -> list[Figure]:
    """Grades per second one after the other and as many at a time as there are cores; latency."""
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    cores = len(os.sched_getaffinity(0))
    engine = Engine({"type": "python", "name": "words", "source": SOURCE})
    try:
        await _through(engine, 50, cores)
        rounds: list[list[float]] = []
        rates: dict[str, list[float]] = {"alone": [], "together": [], "fresh": [], "freshes": []}
        # In turns with the floors, so that a busy moment of the machine hits both.
        for _ in range(ROUNDS):
            rates["fresh"].append(_fresh(1))
            rounds.append([])
            rates["alone"].append(await _through(engine, CALLS, 1, rounds[-1]))
            rates["freshes"].append(_fresh(cores))
            rates["together"].append(await _through(engine, CALLS, cores))
    finally:
        await engine.close()
    best = {name: max(found) for name, found in rates.items()}
    # Of the calmest round: on a busy machine a call waits for a core, whatever it does.
    p99, p50 = min((_share(found, 0.99), _share(found, 0.5)) for found in rounds)
    program = "python -I, started for each call"
    return [
        Figure(
            name="python, one call after the other",
            measured=best["alone"],
            floor=best["fresh"],
            unit="grades per second",
            floor_is=program,
            limit=f"at least {LEAST_TIMES:g} × the floor",
            holds=best["alone"] >= LEAST_TIMES * best["fresh"],
        ),
        Figure(
            name=f"python, {cores} calls at a time",
            measured=best["together"],
            floor=best["freshes"],
            unit="grades per second",
            floor_is=f"{program}, as many at a time",
            limit="for comparison",
            holds=True,
        ),
        Figure(
            name="python, the slowest of a hundred calls",
            measured=p99,
            floor=p50,
            unit="ms",
            floor_is="the median call",
            limit=f"at most {MOST_P99_MS:g} ms",
            holds=p99 <= MOST_P99_MS,
        ),
    ]


async def _through(
    engine: Engine, calls: int, at_a_time: int, latencies: list[float] | None = None
) -> float:
    """Grade so many times; returns grades per second."""

    async def worker(count: int) -> None:
        for _ in range(count):
            started = time.perf_counter()
            graded = await engine.grade(SAMPLE, ITEM)
            assert graded.outcome == Score(0.5), graded
            if latencies is not None:
                latencies.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(worker(calls // at_a_time) for _ in range(at_a_time)))
    return calls // at_a_time * at_a_time / (time.perf_counter() - started)


def _share(latencies: list[float], share: float) -> float:
    """The latency that this share of calls does not exceed, in milliseconds."""
    return 1e3 * sorted(latencies)[int(len(latencies) * share)]


def _fresh(at_a_time: int) -> float:
    """Grade with a new interpreter for each call; returns grades per second."""
    request = json.dumps([SAMPLE, ITEM]).encode()

    def one(_: Any) -> None:
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROGRAM], input=request, capture_output=True, check=True
        )
        assert float(done.stdout) == 0.5

    started = time.perf_counter()
    with ThreadPoolExecutor(at_a_time) as pool:
        list(pool.map(one, range(FLOOR_CALLS)))
    return FLOOR_CALLS / (time.perf_counter() - started)
