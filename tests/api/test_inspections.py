"""What becomes of a training file whose rows are read while it arrives, or after that."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from rft.dataset import Report
from sqlalchemy.orm import Session, sessionmaker

from api.services import inspections
from core.clock import now
from core.inspection import apart
from core.models import File
from core.settings import Settings
from tests.api.examples import error_of, job_body
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


def test_a_file_of_rows_that_take_too_long_is_refused(
    api: Api,
    http: httpx.Client,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    hasty = tmp_path / "hasty"
    hasty.write_text(f"#!/bin/sh\nexit {apart.TOO_SLOW}\n")
    hasty.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(hasty))
    assert "take too long" in error_of(send(http, ROWS), 400)["message"]
    assert nothing_left(store, sessions)
    file_id = send(http, b'{"a": 1}\n').json()["id"]
    monkeypatch.setattr(apart, "SMALL_BYTES", 0)
    path = f"/v1/files/{file_id}/validation?kind=preference"
    assert "take too long" in error_of(http.get(path), 400)["message"]
    with sessions.begin() as session:
        file = session.get_one(File, file_id)
        file.status = "uploaded"
    # The file was answered as `uploaded` before its process gave up.
    late: Future[Report] = Future()
    late.set_exception(apart.TooSlowToRead())
    waiting: Any = SimpleNamespace(report=late)
    api.app.state.parts.inspections.settle_later(waiting, file)
    shown = http.get(f"/v1/files/{file_id}").json()
    assert shown["status"] == "error" and "take too long" in shown["status_details"]
