"""A file's content: whole, in part, and not at all when the client already has it."""

import hashlib

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.content import Span, Unsatisfiable, parse_range
from tests.api.examples import error_of
from tests.fakes.memory_store import MemoryStore
from tests.properties import property_test

CONTENT = bytes(range(100))
ETAG = f'"{hashlib.sha256(CONTENT).hexdigest()}"'


@pytest.fixture
def path(http: httpx.Client) -> str:
    """Where the content of a stored file is."""
    form = {"files": {"file": ("a.bin", CONTENT)}, "data": {"purpose": "user_data"}}
    made = http.post("/v1/files", **form).json()  # type: ignore[arg-type]
    return f"/v1/files/{made['id']}/content"


def test_the_whole_content(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert (response.status_code, response.content) == (200, CONTENT)
    assert response.headers["etag"] == ETAG
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["content-length"] == "100"


def test_ranges(http: httpx.Client, path: str) -> None:
    for asked, start, end in (
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=90-", 90, 100),
        ("bytes=90-1000", 90, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-1000", 0, 100),
        ("Bytes = 1 - 2", 1, 3),
    ):
        response = http.get(path, headers={"range": asked})
        assert (response.status_code, response.content) == (206, CONTENT[start:end])
        assert response.headers["content-range"] == f"bytes {start}-{end - 1}/100"
        assert response.headers["content-length"] == str(end - start)
        assert response.headers["etag"] == ETAG


def test_ranges_without_a_byte(http: httpx.Client, path: str) -> None:
    for asked in ("bytes=100-", "bytes=100-200", "bytes=-0"):
        response = http.get(path, headers={"range": asked})
        error = error_of(response, 416)
        assert (error["param"], error["code"]) == ("range", "invalid_range")
        assert response.headers["content-range"] == "bytes */100"


def test_ranges_that_are_not_honoured_give_the_whole(http: httpx.Client, path: str) -> None:
    unread = ("bytes=5-2", "bytes=-", "bytes=0-1,3-4", "lines=0-1", "bytes=x-", "")
    for asked in (*unread, f"bytes=0-{'9' * 5000}"):
        response = http.get(path, headers={"range": asked})
        assert (response.status_code, response.content) == (200, CONTENT)


def test_a_range_of_what_the_client_began_with(http: httpx.Client, path: str) -> None:
    def status(unless: str) -> int:
        return http.get(path, headers={"range": "bytes=1-", "if-range": unless}).status_code

    assert status(ETAG) == 206
    for other in ('"other"', f"W/{ETAG}", "Tue, 15 Nov 1994 12:45:26 GMT"):
        assert status(other) == 200


def test_what_the_client_has_is_not_sent_again(
    http: httpx.Client, store: MemoryStore, path: str
) -> None:
    response = http.get(path, headers={"if-none-match": '"other"'})
    assert (response.status_code, response.content) == (200, CONTENT)
    store.objects.clear()
    for known in (ETAG, f"W/{ETAG}", f'"x", {ETAG}', "*"):
        response = http.get(path, headers={"if-none-match": known})
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["etag"] == ETAG


@property_test
@given(
    size=st.integers(1, 1000),
    first=st.none() | st.integers(0, 1200),
    last=st.none() | st.integers(0, 1200),
)
def test_spans_lie_in_the_content(size: int, first: int | None, last: int | None) -> None:
    text = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    wanted = set(range(size))
    if first is not None:
        wanted &= set(range(first, size if last is None else last + 1))
    elif last is not None:
        wanted &= set(range(size - last, size))
    try:
        span = parse_range(text, size)
    except Unsatisfiable:
        assert not wanted
        return
    if span is None:
        assert (first is last is None) or (first is not None and last is not None and last < first)
    else:
        assert span == Span(min(wanted), max(wanted) + 1)
