"""Load for one HTTP server: connections that each ask again as soon as they have their answer.

A client library would cost more than the server that it measures, so this one reads only what it
needs: the status and the length of the answer.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import uvloop


@dataclass(frozen=True)
class Load:
    """Answers per second, and the 50th and 99th percentile of their latencies in milliseconds."""

    rate: float
    p50_ms: float
    p99_ms: float


def load(
    url: str, paths: Sequence[str], *, key: str, seconds: float, connections: int = 32
) -> Load:
    """Ask for random `paths` for so many seconds; raises `RuntimeError` for an answer not 200."""
    return uvloop.run(_load(url, paths, key, seconds, connections))


async def _load(url: str, paths: Sequence[str], key: str, seconds: float, connections: int) -> Load:
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80
    head = f"HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {key}\r\n\r\n"
    requests = [f"GET {path} {head}".encode() for path in paths]
    loop = asyncio.get_running_loop()
    deadline = time.perf_counter() + seconds
    asking = [_Asking(requests, deadline, random.Random(seed)) for seed in range(connections)]
    started = time.perf_counter()
    for each in asking:
        await loop.create_connection(lambda each=each: each, host, port)
    await asyncio.gather(*(each.done for each in asking))
    took = time.perf_counter() - started
    latencies = sorted(latency for each in asking for latency in each.latencies)
    return Load(
        rate=len(latencies) / took,
        p50_ms=1000 * statistics.median(latencies),
        p99_ms=1000 * latencies[int(0.99 * len(latencies))],
    )


class _Asking(asyncio.Protocol):
    """One connection; `done` ends with it."""

    def __init__(self, requests: Sequence[bytes], deadline: float, rng: random.Random) -> None:
        self.latencies: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests, self._deadline, self._rng = requests, deadline, rng
        self._left = -1
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not asyncio's by class, only by what they do.
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        if self._left < 0:
            data = self._head + data
            head, found, body = data.partition(b"\r\n\r\n")
            if not found:
                self._head = data
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self.done.set_exception(RuntimeError(data[:500].decode(errors="replace")))
                self._transport.close()
                return
            lower = head.lower()
            at = lower.index(b"content-length:") + len(b"content-length:")
            self._left = int(lower[at:].split(b"\r\n", 1)[0]) - len(body)
        else:
            self._left -= len(data)
        if self._left == 0:
            self._answered()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or RuntimeError("the server closed the connection"))

    def _answered(self) -> None:
        now = time.perf_counter()
        self.latencies.append(now - self._asked)
        if now < self._deadline:
            self._ask()
        else:
            self.done.set_result(None)
            self._transport.close()

    def _ask(self) -> None:
        self._left, self._head = -1, b""
        self._asked = time.perf_counter()
        self._transport.write(self._rng.choice(self._requests))
