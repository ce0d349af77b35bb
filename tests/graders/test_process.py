"""The grader process, over its Unix socket, and the client that talks to it."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graders import (
    Failure,
    GraderClient,
    GraderProcess,
    GraderProcessError,
    Score,
    frames,
    start_grader_process,
    to_wire,
)
from graders.base import Grader
from graders.engine import Engine
from graders.paths import Context
from graders.process import Connections
from graders.string_check import StringCheck
from graders.trace import Trace
from tests.graders.examples import multi, string_check

ROOT = Path(__file__).resolve().parents[2]
RIGHT = ({"output_text": "x"}, {"answer": "x"})
WRONG = ({"output_text": "y"}, {"answer": "x"})


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraderProcess]:
    spec = multi({"exact": string_check()}, "2 * exact")
    started = start_grader_process(spec, tmp_path_factory.mktemp("job"))
    yield started
    started.close()


@pytest.fixture
def client(process: GraderProcess) -> Iterator[GraderClient]:
    connected = GraderClient(process.socket_path)
    yield connected
    connected.close()


def test_outcome_travels_whole(client: GraderClient) -> None:
    client.submit(7, *RIGHT)
    reply = client.receive()
    assert (reply.id, reply.outcome) == (7, Score(2.0, {"exact": 1.0}))
    assert reply.latency_s > 0
    client.submit(8, {"output_text": "x"}, {})
    outcome = client.receive().outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.grader) == ("invalid_variable_error", "exact")


def test_grade_all_keeps_the_order(client: GraderClient) -> None:
    graded = client.grade_all([RIGHT, WRONG] * 300)
    assert [g.outcome.value for g in graded] == [2.0, 0.0] * 300
    assert client.grade_all([]) == []


def test_much_may_be_sent_before_anything_is_received(client: GraderClient) -> None:
    # Several times what both socket buffers hold, in both directions.
    sample = {"output_text": "x" * 200_000}
    for number in range(100):
        client.submit(number, sample, {"answer": "x"})
    assert sorted(client.receive().id for _ in range(100)) == list(range(100))


def test_an_id_is_in_flight_once(client: GraderClient) -> None:
    client.submit(1, *RIGHT)
    with pytest.raises(ValueError, match="in flight already"):
        client.submit(1, *RIGHT)
    with pytest.raises(ValueError, match="receive them first"):
        client.grade_all([RIGHT])
    client.receive()
    client.submit(1, *RIGHT)
    client.receive()


def test_waiting_has_an_end(client: GraderClient) -> None:
    with pytest.raises(GraderProcessError, match="no answer within 0"):
        client.receive(timeout_s=0)


def test_several_connections_share_one_process(process: GraderProcess) -> None:
    first, second = GraderClient(process.socket_path), GraderClient(process.socket_path)
    first.submit(1, *RIGHT)
    second.submit(1, *WRONG)
    assert first.receive().outcome.value == 2.0
    assert second.receive().outcome.value == 0.0
    first.close()
    second.close()


MALFORMED = [
    (frames.HEADER.pack(3) + b"abc", "not JSON"),
    (frames.HEADER.pack(4) + b"\xff\xfe\xfd\xfc", "not JSON"),
    (frames.HEADER.pack(2) + b"[]", "must be an object"),
    (frames.encode({"id": "1", "sample": {}, "item": {}}), "integer 'id'"),
    (frames.encode({"id": 1, "sample": []}), "objects 'sample' and 'item'"),
    (frames.HEADER.pack(frames.MAX_FRAME_BYTES + 1), "may hold 67,108,864 bytes"),
    (b"\0\0", "ended inside a frame"),
    (frames.HEADER.pack(10) + b"{}", "ended inside a frame"),
]


@pytest.mark.parametrize(("data", "reason"), MALFORMED)
def test_malformed_frame_is_refused_with_a_reason(
    process: GraderProcess, client: GraderClient, data: bytes, reason: str
) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(process.socket_path))
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))
    size = frames.HEADER.size
    refusal = json.loads(answer[size:])
    assert frames.length(answer[:size]) == len(answer) - size
    assert refusal["id"] is None
    assert reason in refusal["error"]
    client.submit(1, *RIGHT)
    assert client.receive().outcome == Score(2.0, {"exact": 1.0}), "the process goes on"


def test_client_raises_the_refusal(process: GraderProcess) -> None:
    client = GraderClient(process.socket_path)
    client._socket.send(frames.HEADER.pack(2) + b"[]")
    with pytest.raises(GraderProcessError, match="must be an object"):
        client.receive()
    with pytest.raises(GraderProcessError, match="closed the connection"):
        client.receive()
    client.close()


def test_message_that_is_no_json_is_refused_before_sending(client: GraderClient) -> None:
    with pytest.raises(frames.WireError, match="not JSON"):
        client.submit(1, {"output_text": object()}, {})
    client.submit(1, *RIGHT)
    assert client.receive().id == 1


def test_the_grader_with_its_secrets_does_not_stay_on_disk(tmp_path: Path) -> None:
    process = start_grader_process(string_check(), tmp_path)
    process.close()
    assert [path.name for path in tmp_path.iterdir()] == ["grader.log"]


def test_replies_stream_as_they_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request is answered only after the second reply has been read."""
    second_was_read = asyncio.Event()

    class Patient(Grader):
        async def grade(self, context: Context, _trace: Trace) -> Score:
            if context.item["slow"]:
                await second_was_read.wait()
            return Score(1.0)

    async def talk() -> list[int]:
        path = str(tmp_path / "s")
        server = await asyncio.start_unix_server(Connections(Engine(string_check())).handle, path)
        reader, writer = await asyncio.open_unix_connection(path)
        for number, slow in ((1, True), (2, False)):
            writer.write(frames.encode({"id": number, "sample": {}, "item": {"slow": slow}}))
        first = await read(reader)
        second_was_read.set()
        last = await read(reader)
        writer.close()
        server.close()
        assert first["outcome"] == to_wire(Score(1.0))
        return [first["id"], last["id"]]

    async def read(reader: asyncio.StreamReader) -> dict[str, Any]:
        header = await asyncio.wait_for(reader.readexactly(frames.HEADER.size), timeout=60)
        return frames.decode(await reader.readexactly(frames.length(header)))

    monkeypatch.setattr(StringCheck, "build", lambda _spec, _services: Patient())
    assert asyncio.run(talk()) == [2, 1]


def test_end_of_standard_input_ends_the_process(tmp_path: Path) -> None:
    process = start_grader_process(string_check(), tmp_path)
    assert process.client.grade_all([RIGHT])[0].outcome == Score(1.0)
    process.close()
    assert process._process.returncode == 0
    assert not process.socket_path.exists()


def test_process_ends_when_no_one_holds_its_standard_input(tmp_path: Path) -> None:
    spec_path, socket_path = tmp_path / "spec.json", tmp_path / "s"
    spec_path.write_text(json.dumps(string_check()))
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "graders", "--spec", spec_path, "--socket", socket_path]
    process = subprocess.Popen(command, stdin=reader, cwd=ROOT)
    os.close(reader)
    os.close(writer)
    assert process.wait(timeout=60) == 0
    assert not socket_path.exists()


def test_socket_is_for_its_owner_only(process: GraderProcess) -> None:
    assert stat.S_IMODE(process.socket_path.stat().st_mode) & 0o077 == 0


def test_killed_process_is_noticed(tmp_path: Path) -> None:
    process = start_grader_process(string_check(), tmp_path)
    process._process.kill()
    process._process.wait()
    with pytest.raises(GraderProcessError, match="closed the connection"):
        process.client.grade_all([RIGHT])
    process.close()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"type": "none"}, "Unknown grader type 'none'"),
        (string_check(operation="x"), "Must be 'eq'"),
    ],
)
def test_refused_grader_is_named_at_the_start(spec: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(GraderProcessError, match=reason):
        start_grader_process(spec, tmp_path)


def test_no_process_to_connect_to(tmp_path: Path) -> None:
    with pytest.raises(GraderProcessError, match="No grader process listens at"):
        GraderClient(tmp_path / "none")


def test_a_caller_that_waits_is_told_so(
    client: GraderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graders.client.WAITING_S", 0.01)
    told: list[None] = []
    client.waiting = lambda: told.append(None)
    with pytest.raises(GraderProcessError, match=r"no answer within 0\.1"):
        client.receive(timeout_s=0.1)
    assert told
