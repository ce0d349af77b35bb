"""Uploads in parts: what they make, what closes them, and what they leave behind."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.models import File, Upload, UploadPart
from tests.api.examples import error_of, jsonl
from tests.api.running import Api
from tests.fakes.memory_store import MemoryStore

ROWS = jsonl()
HALVES = (ROWS[:300], ROWS[300:])


def begin(http: httpx.Client, content: bytes = ROWS, **changes: Any) -> str:
    """Begin an upload of `content` and return its id."""
    body = {"filename": "rows.jsonl", "purpose": "fine-tune", "mime_type": "text/jsonl"}
    response = http.post("/v1/uploads", json={**body, "bytes": len(content), **changes})
    assert response.status_code == 200, response.text
    made: str = response.json()["id"]
    return made


def send(http: httpx.Client, upload_id: str, data: bytes) -> httpx.Response:
    """Send a part."""
    return http.post(f"/v1/uploads/{upload_id}/parts", files={"data": ("blob", data)})


def complete(http: httpx.Client, upload_id: str, ids: list[str], **body: Any) -> httpx.Response:
    """Make a file of parts."""
    return http.post(f"/v1/uploads/{upload_id}/complete", json={"part_ids": ids, **body})


def halves(http: httpx.Client, upload_id: str) -> list[str]:
    """Send both halves of the rows and return the ids of the parts."""
    return [send(http, upload_id, half).json()["id"] for half in HALVES]


def test_the_official_client(client: openai.OpenAI, store: MemoryStore) -> None:
    upload = client.uploads.create(
        bytes=len(ROWS),
        filename="rows.jsonl",
        mime_type="text/jsonl",
        purpose="fine-tune",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (upload.status, upload.file, upload.bytes) == ("pending", None, len(ROWS))
    assert upload.expires_at == upload.created_at + 3600
    second = client.uploads.parts.create(upload.id, data=HALVES[1])
    first = client.uploads.parts.create(upload.id, data=HALVES[0])
    assert first.upload_id == upload.id
    done = client.uploads.complete(
        upload.id, part_ids=[first.id, second.id], md5=hashlib.md5(ROWS).hexdigest()
    )
    assert (done.id, done.status) == (upload.id, "completed")
    assert done.file is not None
    assert done.file == client.files.retrieve(done.file.id)
    assert done.file.expires_at == done.file.created_at + 3600
    assert (done.file.filename, done.file.status) == ("rows.jsonl", "processed")
    assert client.files.content(done.file.id).content == ROWS
    assert store.objects[f"files/{done.file.id}"] == ROWS


def test_the_helpers_of_the_official_clients(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROWS)

    async def both() -> list[Any]:
        options: dict[str, Any] = {"api_key": api.key, "base_url": f"{api.url}/v1"}
        options["_strict_response_validation"] = True
        with openai.OpenAI(**options) as client:
            chunked: dict[str, Any] = {"mime_type": "text/jsonl", "purpose": "fine-tune"}
            made = [client.uploads.upload_file_chunked(file=path, part_size=100, **chunked)]
        async with openai.AsyncOpenAI(**options) as other:
            made.append(await other.uploads.upload_file_chunked(file=path, **chunked))
            for each in made:
                assert each.file is not None
                content = await other.files.content(each.file.id)
                assert content.content == ROWS
        return made

    assert [each.status for each in asyncio.run(both())] == ["completed", "completed"]


def test_parts_may_arrive_side_by_side(http: httpx.Client) -> None:
    pieces = [ROWS[at : at + 97] for at in range(0, len(ROWS), 97)]
    upload_id = begin(http)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda data: send(http, upload_id, data), pieces))
    ids = [answer.json()["id"] for answer in answers]
    file = complete(http, upload_id, ids).json()["file"]
    assert http.get(f"/v1/files/{file['id']}/content").content == ROWS


def test_of_two_that_complete_at_once_one_makes_the_file(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    upload_id = begin(http)
    ids = halves(http, upload_id)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: complete(http, upload_id, ids), range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    with sessions() as session:
        assert len(session.scalars(select(File)).all()) == 1
    assert len([key for key in store.objects if key.startswith("files/")]) == 1
    error = error_of(complete(http, upload_id, ids[:1]), 400)
    assert error["code"] == "invalid_upload_state" and "is completed" in error["message"]


def test_an_upload_closed_while_its_parts_are_read(
    http: httpx.Client,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload_id = begin(http)
    ids = halves(http, upload_id)
    read = store.iter

    def closing(key: str, *arguments: Any, **options: Any) -> Any:
        with sessions.begin() as session:
            session.get_one(Upload, upload_id).status = "cancelled"
        return read(key, *arguments, **options)

    monkeypatch.setattr(store, "iter", closing)
    assert "is cancelled" in error_of(complete(http, upload_id, ids), 400)["message"]
    assert not [key for key in store.objects if key.startswith("files/")]
    assert not http.get("/v1/files").json()["data"]


def test_what_the_parts_must_be(http: httpx.Client, store: MemoryStore) -> None:
    upload_id = begin(http)
    first, second = halves(http, upload_id)

    def refused(ids: list[str], **body: Any) -> dict[str, Any]:
        return error_of(complete(http, upload_id, ids, **body), 400)

    assert refused([first])["code"] == "size_mismatch"
    assert refused([first, first])["code"] == "invalid_part"
    assert "part_x" in refused([first, "part_x"])["message"]
    assert refused([])["param"] == "part_ids"
    assert refused([first, second], md5="short")["param"] == "md5"
    error = refused([first, second], md5="0" * 32)
    assert error["code"] == "checksum_mismatch"
    assert hashlib.md5(ROWS).hexdigest() in error["message"]
    error = refused([second, first])
    assert error["code"] == "invalid_file_format" and "Line " in error["message"]
    assert not [key for key in store.objects if key.startswith("files/")]
    # Nothing of this closed the upload.
    md5 = hashlib.md5(ROWS).hexdigest().upper()
    assert complete(http, upload_id, [first, second], md5=md5).status_code == 200


def test_a_cancelled_upload_takes_nothing(http: httpx.Client, store: MemoryStore) -> None:
    upload_id = begin(http)
    ids = halves(http, upload_id)
    cancelled = http.post(f"/v1/uploads/{upload_id}/cancel").json()
    assert (cancelled["status"], "file" in cancelled) == (
        "cancelled",
        cancelled.get("file") is None,
    )
    assert http.post(f"/v1/uploads/{upload_id}/cancel").json() == cancelled
    stored = dict(store.objects)
    for response in (send(http, upload_id, b"x"), complete(http, upload_id, ids)):
        error = error_of(response, 400)
        assert error["code"] == "invalid_upload_state" and "is cancelled" in error["message"]
    assert store.objects == stored


def test_an_expired_upload_takes_nothing(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    upload_id = begin(http)
    ids = halves(http, upload_id)
    with sessions.begin() as session:
        session.get_one(Upload, upload_id).expires_at = 1
    for response in (
        send(http, upload_id, b"x"),
        complete(http, upload_id, ids),
        http.post(f"/v1/uploads/{upload_id}/cancel"),
    ):
        assert "is expired" in error_of(response, 400)["message"]


def test_a_part_that_comes_too_late_leaves_nothing(
    http: httpx.Client,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upload_id = begin(http)
    put = store.put_bytes

    def closing(key: str, data: bytes) -> str:
        with sessions.begin() as session:
            session.get_one(Upload, upload_id).status = "cancelled"
        return put(key, data)

    monkeypatch.setattr(store, "put_bytes", closing)
    assert "is cancelled" in error_of(send(http, upload_id, b"x"), 400)["message"]
    assert not store.objects
    with sessions() as session:
        assert session.scalar(select(UploadPart.id)) is None


def test_bodies_that_are_refused(http: httpx.Client) -> None:
    body = {"filename": "a", "purpose": "batch", "mime_type": "nonsense", "bytes": 10}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"purpose": "tune"}, "purpose"),
        ({"bytes": 0}, "bytes"),
        ({"bytes": 8 * 1024**3 + 1}, "bytes"),
        ({"bytes": "10"}, "bytes"),
        ({"filename": ""}, "filename"),
        ({"mime_type": 1}, "mime_type"),
        ({"size": 1}, "size"),
        ({"expires_after": {"anchor": "created_at", "seconds": 1}}, "expires_after.seconds"),
    ]
    for change, param in changes:
        error = error_of(http.post("/v1/uploads", json={**body, **change}), 400)
        assert error["param"] == param
    assert http.post("/v1/uploads", json={**body, "expires_after": None}).status_code == 200


def test_forms_that_are_no_part(http: httpx.Client, store: MemoryStore) -> None:
    upload_id = begin(http)
    path = f"/v1/uploads/{upload_id}/parts"
    assert error_of(http.post(path, files={"file": ("a", b"x")}), 400)["param"] == "file"
    assert error_of(http.post(path, files={"data": ("a", b"")}), 400)["param"] == "data"
    form: dict[str, Any] = {"files": {"data": ("a", b"x")}, "data": {"n": "1"}}
    assert error_of(http.post(path, **form), 400)["code"] == "unknown_parameter"
    error_of(http.post(path, content=b"x", headers={"content-type": "text/plain"}), 415)
    assert not store.objects


def test_a_part_that_is_too_large_is_refused_unread(api: Api, http: httpx.Client) -> None:
    connection = HTTPConnection(urlsplit(api.url).netloc, timeout=30)
    connection.putrequest("POST", f"/v1/uploads/{begin(http)}/parts")
    connection.putheader("authorization", f"Bearer {api.key}")
    connection.putheader("content-type", "multipart/form-data; boundary=x")
    connection.putheader("content-length", str(65 * 1024 * 1024))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_other_purposes_are_not_inspected(http: httpx.Client) -> None:
    upload_id = begin(http, b"\xff\x00", purpose="user_data")
    ids = [send(http, upload_id, b"\xff").json()["id"], send(http, upload_id, b"\x00").json()["id"]]
    assert complete(http, upload_id, ids).json()["file"]["status"] == "processed"


def test_no_upload_of_that_id(http: httpx.Client, new_key: Callable[..., str]) -> None:
    theirs = begin(http)
    http.headers["authorization"] = f"Bearer {new_key()}"
    for upload_id in ("upload_x", theirs):
        for action in ("parts", "complete", "cancel"):
            error = error_of(http.post(f"/v1/uploads/{upload_id}/{action}"), 404)
            assert error["code"] == "upload_not_found" and json.dumps(upload_id)[1:-1] in str(error)
