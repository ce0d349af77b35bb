"""Our own programs as children: API, workers, beat and model serving.

The commands are the ones that docker-compose.yml runs, with other addresses.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from core.process.child import ChildSpec
from core.settings import Settings
from core.stack.ports import LOCALHOST

#: Seconds a training worker gets to hand its job back once its trainer has had RFT_STOP_GRACE_S.
_HAND_BACK_S = 10.0


def program_specs(
    folder: Path, settings: Settings, *, host: str, port: int, env: dict[str, str]
) -> list[ChildSpec]:
    """Return the specs in the order in which they start."""
    return [
        ChildSpec(
            name="api",
            command=_web("api.app:create_app", host=host, port=port),
            env=env,
            is_ready=http_probe(f"http://{reachable(host)}:{port}/health"),
            grace_s=8,
        ),
        ChildSpec(
            name="serving",
            command=_web(
                "workers.serving.app:create_app",
                host=LOCALHOST,
                port=urlsplit(settings.serving_url).port or 0,
            ),
            env=env,
            is_ready=http_probe(f"{settings.serving_url}/health"),
        ),
        _worker("light", settings, env),
        _worker("train", settings, env),
        _beat(folder, env),
    ]


def http_probe(url: str) -> Callable[[], bool]:
    """Return a check that the URL answers at all; what a 503 is about is not a start-up matter."""

    def answers() -> bool:
        try:
            httpx.get(url, timeout=5)
        except httpx.TransportError:
            return False
        return True

    return answers


def reachable(host: str) -> str:
    """Return the address, as in a URL, to call for a server that listens on `host`."""
    if host in ("0.0.0.0", ""):
        return LOCALHOST
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _web(factory: str, *, host: str, port: int) -> tuple[str, ...]:
    address = ("--host", host, "--port", str(port))
    limits = ("--timeout-graceful-shutdown", "5")
    return (sys.executable, "-m", "uvicorn", "--factory", factory, *address, *limits)


def _worker(queue: str, settings: Settings, env: dict[str, str]) -> ChildSpec:
    return ChildSpec(
        name=f"worker-{queue}",
        command=(
            *_celery("worker", "--queues", queue, "--hostname", f"{queue}@%h"),
            *("--concurrency", "1" if queue == "train" else "2"),
            *("--without-gossip", "--without-mingle"),
        ),
        env=env,
        grace_s=settings.stop_grace_s + _HAND_BACK_S,
    )


def _beat(folder: Path, env: dict[str, str]) -> ChildSpec:
    schedule = folder / "beat" / "schedule"
    schedule.parent.mkdir(exist_ok=True)
    return ChildSpec(
        name="beat",
        command=_celery("beat", "--schedule", str(schedule), "--pidfile", ""),
        env=env,
    )


def _celery(*arguments: str) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "celery", "--app", "workers.app"),
        *(*arguments, "--loglevel", "INFO"),
    )
