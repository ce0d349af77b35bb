"""A web application in a process of its own, as the service starts it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.servers import free_ports


@dataclass(frozen=True)
class Served:
    """A running server: where it listens, and its process id."""

    url: str
    pid: int


@contextmanager
def served(factory: str, env: Mapping[str, str], *, probe: str = "/health") -> Iterator[Served]:
    """Run `factory` under uvicorn until the block ends."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "uvicorn", "--factory", factory, "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--no-access-log", "--log-level", "warning"], env={**os.environ, **env}
    )
    try:
        _wait(url + probe, process)
        yield Served(url, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(url, timeout=5)
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")
