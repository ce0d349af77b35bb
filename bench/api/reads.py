"""Reading jobs and events, beside a bare FastAPI route that returns the same bytes."""

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import httpx

from bench.api.load import Load, load
from bench.api.served import served
from bench.api.world import LONG, SHORT, World, postgres_world, sqlite_world
from bench.figures import Figure

#: Different jobs that are asked for in one run.
DIFFERENT = 200
SECONDS, ROUNDS = 2.0, 4
#: What is asked: this share of the bare route's rate, at most so many times its 99th percentile.
SHARE, TIMES = 0.5, 5.0


def measure() -> list[Figure]:
    """Answers per second and 99th percentiles, on SQLite and on Postgres."""
    figures = []
    for name, world in (("SQLite", sqlite_world), ("Postgres", postgres_world)):
        with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as filled:
            figures += _measure(name, filled, Path(folder))
    return figures


def _measure(name: str, world: World, folder: Path) -> list[Figure]:
    models = folder / "models.toml"
    models.write_text("")
    env = {"RFT_DATABASE_URL": world.database_url, "RFT_MODELS_FILE": str(models)}
    kinds = _paths(world)
    with served("api.app:create_app", env) as ours:
        answers = _answers(ours.url, kinds, world.key)
        ready = folder / "bytes.json"
        ready.write_text(json.dumps(answers))
        with served(
            "bench.api.bare:create_app", {"BENCH_BYTES": str(ready)}, probe="/openapi.json"
        ) as bare:
            found = {
                kind: _rounds(ours.url, bare.url, paths, world.key) for kind, paths in kinds.items()
            }
    figures = [figure for kind, rounds in found.items() for figure in _figures(name, kind, *rounds)]
    short, long = (
        median(each.rate for each in found[f"list 20 of {size} events"][0])
        for size in ("1,000", "999,000")
    )
    return [*figures, _flat(name, short, long)]


def _paths(world: World) -> dict[str, list[str]]:
    jobs = "/v1/fine_tuning/jobs"
    picked = random.Random(1).sample(world.jobs, DIFFERENT)
    return {
        "retrieve job": [f"{jobs}/{job}" for job in picked],
        "list 20 jobs": [f"{jobs}?limit=20"],
        "list 20 of 1,000 events": [f"{jobs}/{SHORT}/events?limit=20"],
        "list 20 of 999,000 events": [f"{jobs}/{LONG}/events?limit=20"],
    }


def _answers(url: str, kinds: dict[str, list[str]], key: str) -> dict[str, str]:
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        return {
            path: client.get(path).raise_for_status().text
            for paths in kinds.values()
            for path in paths
        }


def _rounds(ours: str, bare: str, paths: Sequence[str], key: str) -> tuple[list[Load], list[Load]]:
    """Ask both in turn; the first turn warms up and does not count."""
    found: tuple[list[Load], list[Load]] = ([], [])
    for turn in range(ROUNDS + 1):
        for url, loads in zip((ours, bare), found, strict=True):
            measured = load(url, paths, key=key, seconds=SECONDS)
            if turn:
                loads.append(measured)
    return found


def _figures(name: str, kind: str, ours: list[Load], bare: list[Load]) -> list[Figure]:
    rate, floor = median(each.rate for each in ours), median(each.rate for each in bare)
    p99, floor_p99 = median(each.p99_ms for each in ours), median(each.p99_ms for each in bare)
    return [
        Figure(
            name=f"{kind}, {name}",
            measured=rate,
            floor=floor,
            unit="answers/s",
            floor_is="a bare FastAPI route that returns the same bytes",
            limit=f"at least {SHARE:g} × the bare route's",
            holds=rate >= SHARE * floor,
        ),
        Figure(
            name=f"{kind}, {name}, 99th percentile",
            measured=p99,
            floor=floor_p99,
            unit="ms",
            floor_is="a bare FastAPI route that returns the same bytes",
            limit=f"at most {TIMES:g} × the bare route's",
            holds=p99 <= TIMES * floor_p99,
        ),
    ]


def _flat(name: str, short: float, long: float) -> Figure:
    return Figure(
        name=f"list 20 of 999,000 events, {name}",
        measured=long,
        floor=short,
        unit="answers/s",
        floor_is="the same of 1,000 events",
        limit="at least 0.9 × as many",
        holds=long >= 0.9 * short,
    )
