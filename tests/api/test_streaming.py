"""Uploads stream: in bounded memory, inspected on the way, and nothing stays of one that fails."""

import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.services import inspections, sink
from core.clock import now
from core.errors import StoreUnreachable
from core.models import File
from core.settings import Settings
from tests.api.examples import error_of, job_body, jsonl
from tests.api.running import Api
from tests.fakes import memory_store
from tests.fakes.memory_store import MemoryStore

PART = 4096
ROWS = jsonl() * 50


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings of an API that takes larger files."""
    return settings.model_copy(update={"max_upload_bytes": 1_000_000})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few kilobytes what else are megabytes."""
    monkeypatch.setattr(sink, "PART_BYTES", PART)
    monkeypatch.setattr(memory_store, "MIN_PART_BYTES", PART)
    monkeypatch.setattr(inspections, "SMALL_BYTES", PART // 2)


def send(http: httpx.Client, content: bytes, purpose: str = "fine-tune") -> httpx.Response:
    """Upload `content`."""
    form: dict[str, Any] = {"files": {"file": ("rows.jsonl", content)}, "data": {}}
    form["data"]["purpose"] = purpose
    return http.post("/v1/files", **form)


def nothing_left(store: MemoryStore, sessions: sessionmaker[Session]) -> bool:
    with sessions() as session:
        return not (store.objects or store.begun or session.scalar(select(File.id)))


def until(reached: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_of_many_parts(http: httpx.Client, store: MemoryStore) -> None:
    for content in (ROWS, ROWS[: PART * 3], ROWS[:PART]):
        made = send(http, content, "user_data").json()
        assert store.objects[f"files/{made['id']}"] == content
        assert made["bytes"] == len(content)
    assert not store.begun
    made = send(http, ROWS).json()
    assert made["status"] == "processed"
    report = http.get(f"/v1/files/{made['id']}/validation").json()
    assert (report["kind"], report["rows"]) == ("reinforcement", 600)


def test_the_purpose_may_come_after_the_file(http: httpx.Client, store: MemoryStore) -> None:
    def after(content: bytes, purpose: str) -> httpx.Response:
        fields: list[Any] = [("file", ("rows.jsonl", content)), ("purpose", (None, purpose))]
        return http.post("/v1/files", files=fields)

    assert after(ROWS, "fine-tune").json()["status"] == "processed"
    assert after(b"\xff" * PART * 3, "user_data").json()["status"] == "processed"
    assert "Line 1 is" in error_of(after(b"[1]\n" * PART, "fine-tune"), 400)["message"]
    assert error_of(after(ROWS, "tune"), 400)["param"] == "purpose"
    assert len(store.objects) == 2


def test_each_kind_of_rows_is_recognised(http: httpx.Client) -> None:
    question = {"role": "user", "content": "1+1?"}
    answer = {"role": "assistant", "content": "2"}
    other = {"role": "assistant", "content": "3"}
    pair = {"preferred_output": [answer], "non_preferred_output": [other]}
    for kind, row in (
        ("reinforcement", {"messages": [question], "answer": "2"}),
        ("supervised", {"messages": [question, answer]}),
        ("preference", {"input": {"messages": [question]}, **pair}),
    ):
        for content in (jsonl([row]), jsonl([row]) * 100):
            made = send(http, content).json()
            report = http.get(f"/v1/files/{made['id']}/validation").json()
            assert (report["kind"], report["ok"]) == (kind, True), report


def test_bad_lines_of_a_large_file_are_all_listed(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    message = error_of(send(http, ROWS + b"[]\n" + ROWS + b"{\n"), 400)["message"]
    assert "Line 601 is not" in message and "Line 1202 is not" in message
    assert nothing_left(store, sessions)


def test_a_large_file_is_answered_before_its_report(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspections, "AWAITED_BYTES", 0)
    monkeypatch.setattr(inspections, "PATIENCE", 0)
    good, bad = send(http, ROWS).json(), send(http, ROWS + b"[]\n").json()
    assert (good["status"], bad["status"]) == ("uploaded", "uploaded")

    def shown(file: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = http.get(f"/v1/files/{file['id']}").json()
        return found

    until(lambda: "uploaded" not in (shown(good)["status"], shown(bad)["status"]))
    assert shown(good) == {**good, "status": "processed"}
    assert shown(bad)["status"] == "error"
    assert "Line 601 is not a dictionary" in shown(bad)["status_details"]
    error = error_of(http.post("/v1/fine_tuning/jobs", json=job_body(bad["id"])), 400)
    assert "Line 601 is not a dictionary" in error["message"]
    # A file that cannot be right from its first row on is refused as ever.
    error_of(send(http, b"question,answer\n" * PART), 400)


def test_what_the_inspection_could_not_keep_up_with_is_read_from_the_store(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.inspection.inspection.MAX_LAG_BYTES", PART)
    made = send(http, ROWS + b'{"messages": 1}\n').json()
    report = http.get(f"/v1/files/{made['id']}/validation").json()
    assert report["rows"] == 601
    assert [error["line"] for error in report["errors"]] == [601]


@pytest.mark.parametrize("call", ["begin", "put_part", "finish", "put_bytes"])
def test_a_store_that_fails(
    call: str,
    http: httpx.Client,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnreachable("memory://", "down")

    with monkeypatch.context() as failing:
        failing.setattr(store, call, fail)
        content = b"{}" if call == "put_bytes" else ROWS
        assert error_of(send(http, content), 503)["code"] == "store_unreachable"
    assert nothing_left(store, sessions)
    assert send(http, ROWS).status_code == 200


def test_a_file_that_grows_too_large_while_it_arrives(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    error = error_of(send(http, b"x" * 1_000_001, "user_data"), 413)
    assert error["code"] == "request_too_large"
    assert nothing_left(store, sessions)
    assert send(http, b"x" * 1_000_000, "user_data").status_code == 200


def test_a_form_that_fails_after_its_file(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    fields: list[Any] = [("purpose", (None, "user_data")), ("file", ("a", ROWS))]
    for more in (
        ("file", ("b", ROWS)),
        ("other", ("b", ROWS)),
        ("purpose", (None, "batch")),
        ("colour", (None, "red")),
        ("expires_after[seconds]", (None, "1")),
    ):
        error_of(http.post("/v1/files", files=[*fields, more]), 400)
        assert nothing_left(store, sessions)
    request = http.build_request("POST", "/v1/files", files=fields)
    whole = request.read()
    headers = {"content-type": request.headers["content-type"]}
    error = error_of(http.post("/v1/files", content=whole[:-30], headers=headers), 400)
    assert error["code"] == "invalid_form"
    assert nothing_left(store, sessions)


def half_sent(api: Api, http: httpx.Client) -> HTTPConnection:
    """A connection on which half of an upload was sent."""
    request = http.build_request(
        "POST", "/v1/files", files=[("purpose", (None, "fine-tune")), ("file", ("a", ROWS))]
    )
    body = request.read()
    connection = HTTPConnection(urlsplit(api.url).netloc, timeout=30)
    connection.putrequest("POST", "/v1/files")
    for name in ("authorization", "content-type", "content-length"):
        connection.putheader(name, request.headers[name])
    connection.endheaders(body[: len(body) // 2])
    return connection


def test_a_client_that_goes_away(
    api: Api, store: MemoryStore, sessions: sessionmaker[Session], http: httpx.Client
) -> None:
    connection = half_sent(api, http)
    until(lambda: bool(store.begun))
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    until(lambda: not store.begun)
    assert nothing_left(store, sessions)
    assert not api.app.state.parts.inspections.waiting


def test_slow_senders_hold_up_nobody_else(
    api: Api, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspections, "PLACES", 1)
    slow = half_sent(api, http)
    until(lambda: bool(api.app.state.parts.inspections.waiting))
    assert send(http, ROWS).json()["status"] == "processed"
    assert "Line 1 is" in error_of(send(http, b"[1]\n" * PART), 400)["message"]
    slow.close()


def due(sessions: sessionmaker[Session], file_id: str) -> bool:
    """Whether a worker inspects the file now."""
    with sessions() as session:
        after = session.get_one(File, file_id).inspect_after
    return after is not None and after <= now()


def test_a_file_whose_inspection_fails_is_left_to_a_worker(
    http: httpx.Client, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    made = send(http, ROWS).json()
    assert made["status"] == "uploaded"
    assert due(sessions, made["id"])


def test_a_process_that_ends_leaves_its_inspections_to_a_worker(
    api: Api,
    http: httpx.Client,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*_: object, **__: object) -> Iterator[bytes]:
        while True:
            yield ROWS
            time.sleep(0.01)

    monkeypatch.setattr(store, "iter", endless)
    monkeypatch.setattr(inspections, "AWAITED_BYTES", 0)
    monkeypatch.setattr(inspections, "PATIENCE", 0)
    monkeypatch.setattr(inspections, "PLACES", 0)
    # The last one waits for a place, and is cancelled before it begins.
    made = [send(http, ROWS).json() for _ in range(inspections.STORED_PLACES + 1)]
    assert {each["status"] for each in made} == {"uploaded"}
    assert not any(due(sessions, each["id"]) for each in made)
    api.app.state.parts.inspections.close()
    until(lambda: all(due(sessions, each["id"]) for each in made))


def test_a_name_longer_than_a_header_may_be(http: httpx.Client) -> None:
    files = {"file": ("x" * 100_000, b"{}")}
    error = error_of(http.post("/v1/files", files=files, data={"purpose": "batch"}), 400)
    assert error["code"] == "invalid_form"
