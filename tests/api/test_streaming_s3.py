"""Uploads on a real object store: what is stored, what is read in ranges, and what is left."""

import hashlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from core.keys import create_key, create_project
from core.settings import Settings
from core.store import ObjectStore
from tests.api.examples import error_of
from tests.api.running import running

ROW = b'{"messages": [{"role": "user", "content": "' + b"1+1? " * 200 + b'"}], "answer": "2"}\n'
#: More than two parts of what is sent to the store at a time.
CONTENT = ROW * (18_000_000 // len(ROW))


@pytest.fixture
def http(
    s3: ObjectStore, s3_settings: Settings, sessions: sessionmaker[Session]
) -> Iterator[httpx.Client]:
    """A client of an API on the store."""
    with sessions.begin() as session:
        secret = create_key(session, create_project(session, "p").id, "k")[1]
    settings = s3_settings.model_copy(update={"max_upload_bytes": 10**9})
    headers = {"authorization": f"Bearer {secret}"}
    with (
        running(create_app(settings, store=s3)) as url,
        httpx.Client(base_url=url, headers=headers, timeout=60) as client,
    ):
        yield client


def send(http: httpx.Client, content: bytes) -> httpx.Response:
    """Upload a training file."""
    form: dict[str, Any] = {"files": {"file": content}, "data": {"purpose": "fine-tune"}}
    return http.post("/v1/files", **form)


def test_a_file_in_one_request(http: httpx.Client, s3: ObjectStore) -> None:
    made = send(http, CONTENT).json()
    assert (made["bytes"], made["status"]) == (len(CONTENT), "processed")
    path = f"/v1/files/{made['id']}"
    whole = http.get(f"{path}/content")
    assert whole.content == CONTENT
    assert whole.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    middle = http.get(f"{path}/content", headers={"range": "bytes=8388600-8388620"})
    assert (middle.status_code, middle.content) == (206, CONTENT[8388600:8388621])
    assert http.get(f"{path}/validation").json()["rows"] == len(CONTENT) // len(ROW)
    http.delete(path)
    assert not list(s3.list(""))


def test_a_file_that_is_refused_leaves_nothing(http: httpx.Client, s3: ObjectStore) -> None:
    assert "Line " in error_of(send(http, CONTENT + b"[]\n"), 400)["message"]
    assert not list(s3.list(""))
    assert s3.abort_stale("", before=2**40) == 0


def test_a_file_in_parts(http: httpx.Client) -> None:
    body = {"filename": "a.jsonl", "purpose": "fine-tune", "mime_type": "", "bytes": len(CONTENT)}
    upload = f"/v1/uploads/{http.post('/v1/uploads', json=body).json()['id']}"
    # One part goes to the store in several pieces, the others are smaller than S3 joins them.
    pieces = (CONTENT[:3_000_000], CONTENT[3_000_000:-10], CONTENT[-10:])
    ids = [
        http.post(f"{upload}/parts", files={"data": piece}).json()["id"] for piece in pieces[::-1]
    ]
    md5 = hashlib.md5(CONTENT).hexdigest()
    done = http.post(f"{upload}/complete", json={"part_ids": ids[::-1], "md5": md5}).json()
    assert http.get(f"/v1/files/{done['file']['id']}/content").content == CONTENT
