"""Uploads stream: in bounded memory, inspected on the way, and nothing stays of one that fails."""

import socket
from typing import Any

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.errors import StoreUnreachable
from core.settings import Settings
from tests.api.examples import error_of, jsonl
from tests.api.running import Api
from tests.api.sending import PART, ROWS, half_sent, make_parts_small, nothing_left, send, until
from tests.fakes.memory_store import MemoryStore


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings of an API that takes larger files."""
    return settings.model_copy(update={"max_upload_bytes": 1_000_000})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few kilobytes."""
    make_parts_small(monkeypatch)


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


def test_a_name_longer_than_a_header_may_be(http: httpx.Client) -> None:
    files = {"file": ("x" * 100_000, b"{}")}
    error = error_of(http.post("/v1/files", files=files, data={"purpose": "batch"}), 400)
    assert error["code"] == "invalid_form"
