"""Uploads of many small parts, for tests of what happens on their way."""

import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.services import inspections, sink
from core.models import File
from tests.api.examples import jsonl
from tests.api.running import Api
from tests.fakes import memory_store
from tests.fakes.memory_store import MemoryStore

PART = 4096
ROWS = jsonl() * 50


def make_parts_small(monkeypatch: pytest.MonkeyPatch) -> None:
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
