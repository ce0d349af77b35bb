"""Many calls of one judge that takes 200 ms: how close to the ideal they come."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bench.figures import Figure
from bench.graders.judging import CONCURRENCY, SPEC, judged
from bench.machine import ROOT
from graders.outcome import Score

CALLS = 256
LATENCY_S = 0.2
ROUNDS = 3
#: Nothing can be faster than this: full waves of calls, one after the other.
IDEAL_S = CALLS / CONCURRENCY * LATENCY_S
#: What is asked: the ideal and one latency, and a tenth of that.
MOST_S = 1.1 * (IDEAL_S + LATENCY_S)


def measure() -> list[Figure]:
    """The fastest of a few rounds, in seconds, and plain requests to the same server."""
    with _judge() as base_url:
        floors = [asyncio.run(_plain(base_url)) for _ in range(ROUNDS)]
        graded = [asyncio.run(_graded(base_url)) for _ in range(ROUNDS)]
    return [
        Figure(
            name=f"{CALLS} judge calls, {CONCURRENCY} at a time, {LATENCY_S * 1000:g} ms each",
            measured=min(graded),
            floor=min(floors),
            unit="s",
            floor_is=f"plain requests on open connections (ideal: {IDEAL_S:g} s)",
            limit=f"at most {MOST_S:.2g} s: ideal and one latency, + 10 %",
            holds=min(graded) <= MOST_S,
        )
    ]


@contextmanager
def _judge() -> Iterator[str]:
    # A process of its own, as a judge is: in this one it would compete for the interpreter.
    command = [sys.executable, "-m", "bench.fake_judge", "--latency", str(LATENCY_S)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def _graded(base_url: str) -> float:
    engine = judged(SPEC, base_url)
    # Distinct texts: equal ones need not be asked twice.
    samples = [{"output_text": f"text {number}"} for number in range(CALLS)]
    started = time.perf_counter()
    graded = await asyncio.gather(*(engine.grade(sample, {"mood": ""}) for sample in samples))
    seconds = time.perf_counter() - started
    await engine.close()
    assert all(isinstance(g.outcome, Score) for g in graded), graded[0].outcome
    return seconds


async def _plain(base_url: str) -> float:
    address = urlsplit(base_url)
    connections = [
        await asyncio.open_connection(address.hostname, address.port) for _ in range(CONCURRENCY)
    ]
    started = time.perf_counter()
    await asyncio.gather(*(_ask_in_turn(*connection) for connection in connections))
    seconds = time.perf_counter() - started
    for _, writer in connections:
        writer.close()
    return seconds


async def _ask_in_turn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    for _ in range(CALLS // CONCURRENCY):
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        [length] = [line.split(":")[1] for line in head.splitlines() if "content-length" in line]
        await reader.readexactly(int(length))
