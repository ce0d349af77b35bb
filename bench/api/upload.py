"""Uploading 512 MB through the API beside boto3 putting the same file: time, and memory."""

import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
from botocore.config import Config

from bench.api.served import Served, served
from bench.figures import Figure
from bench.suite import run
from core.db import make_engine, session_factory
from core.keys import create_key, create_project
from core.migrate import upgrade
from tests.servers import ACCESS_KEY, SECRET_KEY, s3_server

#: Size of the file, and how often each way sends it.
FILE_BYTES, ROUNDS = 512 * 1024 * 1024, 4
#: What the upload may take, as a multiple of boto3's time, and by how much the API may grow.
MAX_RATIO, MAX_GROWTH_MB = 1.5, 150

_BUCKET = "bench"
_BOUNDARY = "bench-api-upload"


def measure() -> list[Figure]:
    """Send the file both ways in turn, to real servers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rft-bench-")))
        file = write_file(folder / "train.jsonl")
        s3 = stack.enter_context(s3_server(_made(folder / "s3")))
        url = f"sqlite:///{folder / 'rft.db'}"
        key = _project(url)
        env = {
            "RFT_DATABASE_URL": url,
            "RFT_DATA_DIR": str(folder / "data"),
            "RFT_MODELS_FILE": str(_empty(folder / "models.toml")),
            "RFT_S3_ENDPOINT_URL": s3.endpoint_url,
            "RFT_S3_BUCKET": _BUCKET,
            "RFT_S3_ACCESS_KEY_ID": ACCESS_KEY,
            "RFT_S3_SECRET_ACCESS_KEY": SECRET_KEY,
        }
        client = boto3.client(
            "s3",
            endpoint_url=s3.endpoint_url,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}),
        )
        client.create_bucket(Bucket=_BUCKET)
        api = stack.enter_context(served("api.app:create_app", env))
        return _figures(api, key, file, client)


def _figures(api: Served, key: str, file: Path, client: Any) -> list[Figure]:
    http_client = httpx.Client(
        base_url=api.url, headers={"authorization": f"Bearer {key}"}, timeout=600
    )
    small = file.with_name("small.jsonl")
    small.write_bytes(_row(0))
    made = upload(api.url, key, small)
    http_client.delete(f"/v1/files/{made['id']}")
    before = _memory(api.pid, "VmRSS")
    puts, uploads, waits = [], [], []
    for number in range(ROUNDS):
        name = f"direct/{number}"
        puts.append(_timed(partial(client.upload_file, str(file), _BUCKET, name)))
        client.delete_object(Bucket=_BUCKET, Key=name)
        started = time.perf_counter()
        made = upload(api.url, key, file)
        uploads.append(time.perf_counter() - started)
        while http_client.get(f"/v1/files/{made['id']}").json()["status"] == "uploaded":
            time.sleep(0.05)
        waits.append(time.perf_counter() - started)
        http_client.delete(f"/v1/files/{made['id']}")
    growth = _memory(api.pid, "VmHWM") - before
    put, whole = statistics.median(puts), statistics.median(uploads)
    http_client.close()
    return [
        Figure(
            name="upload of 512 MB",
            measured=whole,
            floor=put,
            unit="s",
            floor_is="boto3 putting the same file into the same store",
            limit=f"≤ {MAX_RATIO:g} × floor",
            holds=whole <= MAX_RATIO * put,
        ),
        Figure(
            name="upload of 512 MB until its rows are validated",
            measured=statistics.median(waits),
            floor=put,
            unit="s",
            floor_is="boto3 putting the same file into the same store",
            limit="none",
            holds=True,
        ),
        Figure(
            name="growth of the API process",
            measured=growth,
            floor=before,
            unit="MB",
            floor_is="the process before the first large upload",
            limit=f"≤ {MAX_GROWTH_MB} MB",
            holds=growth <= MAX_GROWTH_MB,
        ),
    ]


def write_file(path: Path, size: int = FILE_BYTES) -> Path:
    """Write rows that differ, at most `size` bytes together."""
    with path.open("wb") as file:
        for number in range(0, size, 1000):
            rows = b"".join(_row(number + each) for each in range(1000))
            if file.tell() + len(rows) > size:
                return path
            file.write(rows)
    return path


def _row(number: int) -> bytes:
    question = f"Order {number} has not arrived. " + "Where is my parcel? " * (number % 40)
    messages = [
        {"role": "system", "content": "Answer as JSON."},
        {"role": "user", "content": question},
    ]
    return json.dumps({"messages": messages, "answer": str(number)}).encode() + b"\n"


def upload(url: str, key: str, file: Path) -> dict[str, Any]:
    """Send a form as cheaply as possible, so that the client does not count."""
    fields = {"purpose": "fine-tune"}
    head = "".join(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head += (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"'
        "\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    tail = f"\r\n--{_BOUNDARY}--\r\n"
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=600)
    connection.putrequest("POST", "/v1/files")
    connection.putheader("Authorization", f"Bearer {key}")
    connection.putheader("Content-Type", f"multipart/form-data; boundary={_BOUNDARY}")
    connection.putheader("Content-Length", str(len(head) + file.stat().st_size + len(tail)))
    connection.endheaders(head.encode())
    for chunk in _chunks(file):
        connection.send(chunk)
    connection.send(tail.encode())
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"the upload failed: {answer.status} {body.decode()}")
    made: dict[str, Any] = json.loads(body)
    return made


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(1 << 20):
            yield chunk


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _memory(pid: int, name: str) -> float:
    """Return a line of the process's memory in MB: `VmRSS` is now, `VmHWM` was the most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    value = next(line for line in lines if line.startswith(f"{name}:")).split()[1]
    return int(value) * 1024 / 1e6


def _project(url: str) -> str:
    upgrade(url)
    engine = make_engine(url)
    with session_factory(engine).begin() as session:
        _, secret = create_key(session, create_project(session, "bench").id, "bench")
    engine.dispose()
    return secret


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _empty(path: Path) -> Path:
    path.touch()
    return path


if __name__ == "__main__":
    sys.exit(run("api", ("upload",), title="Uploads"))
