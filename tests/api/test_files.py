"""Uploads: what is stored, what is refused, and what comes back."""

import base64
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import File
from tests.api.examples import error_of, jsonl
from tests.fakes.memory_store import MemoryStore


def send(http: httpx.Client, content: bytes, **fields: str) -> httpx.Response:
    """Upload `content` with `fields`, as a training file unless they say otherwise."""
    form = {"purpose": "fine-tune", **fields}
    return http.post("/v1/files", files={"file": ("rows.jsonl", content)}, data=form)


def refused(http: httpx.Client, content: bytes, **fields: str) -> dict[str, Any]:
    """Upload what must be refused and return the error."""
    return error_of(send(http, content, **fields), 400)


def test_bytes_size_and_hash_are_kept(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    made = send(http, jsonl()).json()
    assert store.objects == {f"files/{made['id']}": jsonl()}
    assert "expires_at" not in made
    with sessions() as session:
        row = session.get_one(File, made["id"])
    assert row.sha256 == store.put_bytes("again", jsonl())
    assert row.bytes == len(jsonl())


def test_content_is_a_download_and_never_a_page(http: httpx.Client) -> None:
    made = send(http, b"<script>alert(1)</script>", purpose="user_data").json()
    response = http.get(f"/v1/files/{made['id']}/content")
    assert response.content == b"<script>alert(1)</script>"
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''rows.jsonl"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_unusual_files_that_are_good(http: httpx.Client) -> None:
    for content in (
        b'\xef\xbb\xbf{"a": 1}\n',
        b'{"a": 1}\r\n\r\n{"a": 2}\r\n  \n',
        '{"a": "one\u2028line"}'.encode(),
    ):
        assert send(http, content).status_code == 200


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b'{"a": 1}\n[]\n{"a": "say "hi" now"}\n{messages: []}\n', (2, 3, 4)),
        (b'{"a": 1}\n"text"\n', (2,)),
        (b'{"a": 1}\n{"a": 1, "a": 2}\n', (2,)),
        (b'{"a": NaN}\n{"a": 1e999}\n', (1, 2)),
        (b'{"a": "\\ud83d"}\n', (1,)),
        (b'{"a": 1}\n{"a": "caf\xe9"}\n{"a": "caf\xe9"}\n', (2,)),
        ('{"a": 1}\n'.encode("utf-16"), (1,)),
        (b"not json", (1,)),
    ],
)
def test_bad_lines_are_listed_and_nothing_is_stored(
    http: httpx.Client, store: MemoryStore, content: bytes, lines: tuple[int, ...]
) -> None:
    error = refused(http, content)
    start = "Expected file to have JSONL format, where every line is a JSON dictionary. Line "
    assert error["message"].startswith(start)
    named = [n for n in range(1, 9) if f"Line {n} is not a dictionary" in error["message"]]
    assert tuple(named) == lines
    assert (error["param"], error["code"]) == ("file", "invalid_file_format")
    assert not store.objects
    assert not http.get("/v1/files").json()["data"]


def test_many_bad_lines_are_counted(http: httpx.Client) -> None:
    message = refused(http, b"[]\n" * 500)["message"]
    assert "480 more lines are bad" in message


def test_other_purposes_take_any_bytes(http: httpx.Client) -> None:
    assert send(http, base64.b64decode("//4A"), purpose="vision").status_code == 200


def test_refusals(http: httpx.Client) -> None:
    error = refused(http, jsonl(), purpose="tune")
    purposes = "['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals']"
    assert error["message"] == f"'tune' is not one of {purposes} - 'purpose'"
    assert (error["param"], error["code"]) == ("purpose", None)
    assert refused(http, b"")["param"] == "file"
    assert "no rows" in refused(http, b"\n\n")["message"]
    error = error_of(http.post("/v1/files", files={"file": jsonl()}), 400)
    assert (error["param"], error["code"]) == ("purpose", "missing_required_parameter")
    text_only = {"purpose": (None, "fine-tune"), "file": (None, "{}")}
    error = error_of(http.post("/v1/files", files=text_only), 400)
    assert error["param"] == "file"
    two = [("file", ("a", b"{}")), ("file", ("b", b"{}"))]
    error_of(http.post("/v1/files", files=two, data={"purpose": "fine-tune"}), 400)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    error_of(http.post("/v1/files", content=b"no form", headers=broken), 400)


@pytest.mark.parametrize(
    ("anchor", "seconds", "param"),
    [
        ("created_at", "3599", "expires_after.seconds"),
        ("created_at", "2592001", "expires_after.seconds"),
        ("created_at", "soon", "expires_after.seconds"),
        ("now", "3600", "expires_after.anchor"),
    ],
)
def test_expiry_out_of_range(http: httpx.Client, anchor: str, seconds: str, param: str) -> None:
    fields = {"expires_after[anchor]": anchor, "expires_after[seconds]": seconds}
    assert refused(http, jsonl(), **fields)["param"] == param


def test_a_file_larger_than_the_limit(http: httpx.Client, store: MemoryStore) -> None:
    row = b'{"a": "' + b"x" * 100_000 + b'"}'
    assert error_of(send(http, row), 413)["code"] == "request_too_large"
    assert not store.objects


def test_an_expired_file_is_gone(http: httpx.Client, sessions: sessionmaker[Session]) -> None:
    made = send(http, jsonl()).json()
    with sessions.begin() as session:
        session.get_one(File, made["id"]).expires_at = 1
    error_of(http.get(f"/v1/files/{made['id']}"), 404)
    error_of(http.get(f"/v1/files/{made['id']}/content"), 404)
    assert not http.get("/v1/files").json()["data"]


def test_only_batch_files_expire_by_themselves(client: openai.OpenAI) -> None:
    made = client.files.create(file=b"{}", purpose="batch")
    assert made.expires_at == made.created_at + 30 * 24 * 3600


def test_bytes_that_are_gone_are_said_to_be(http: httpx.Client, store: MemoryStore) -> None:
    made = send(http, jsonl()).json()
    store.objects.clear()
    error = error_of(http.get(f"/v1/files/{made['id']}/content"), 404)
    assert "upload them again" in error["message"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\rows\\a.jsonl", "a.jsonl"),
        ("a\x1b[31mb.jsonl", "a[31mb.jsonl"),
        ("Zeilen äöü.jsonl", "Zeilen äöü.jsonl"),
        ("x" * 300, "x" * 255),
        ("/", "upload"),
    ],
)
def test_names_are_made_harmless(http: httpx.Client, sent: str, kept: str) -> None:
    files = {"file": (sent, jsonl())}
    made = http.post("/v1/files", files=files, data={"purpose": "fine-tune"}).json()
    assert made["filename"] == kept
    assert http.get(f"/v1/files/{made['id']}/content").status_code == 200
