"""The fake store and the real one keep the same contract."""

import hashlib
import io
import time
from pathlib import Path

import httpx
import pytest

from core.errors import ObjectMissing
from core.store import MIN_PART_BYTES, ObjectStore, Stored
from tests.fakes.memory_store import MemoryStore

BODY = bytes(range(256)) * 1000


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each of the two stores, empty."""
    if request.param == "memory":
        return MemoryStore()
    real: ObjectStore = request.getfixturevalue("s3")
    return real


def test_a_stream_comes_back_in_chunks_with_size_and_hash(store: ObjectStore) -> None:
    stored = store.put_stream("files/a", io.BytesIO(BODY))
    assert stored == Stored(len(BODY), hashlib.sha256(BODY).hexdigest())
    chunks = list(store.iter("files/a", 1000))
    assert b"".join(chunks) == BODY
    assert len(chunks) > 1


def test_bytes_and_files_come_back(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(BODY)
    assert store.put_file("k/file", tmp_path / "in") == hashlib.sha256(BODY).hexdigest()
    assert store.put_bytes("k/bytes", b"x") == hashlib.sha256(b"x").hexdigest()
    store.get_file("k/file", tmp_path / "deep" / "out")
    assert (tmp_path / "deep" / "out").read_bytes() == BODY
    assert store.get_bytes("k/bytes") == b"x"


def test_what_is_missing_is_named_at_the_call(store: ObjectStore, tmp_path: Path) -> None:
    assert not store.exists("no")
    for read in (store.get_bytes, store.iter, lambda key: store.get_file(key, tmp_path / "f")):
        with pytest.raises(ObjectMissing, match="'no'"):
            read("no")
    store.delete("no")


def test_deleting_a_prefix_spares_its_neighbours(store: ObjectStore) -> None:
    for key in ("jobs/a/1", "jobs/a/b/2", "jobs/ab/3"):
        store.put_bytes(key, b"x")
    assert store.delete_prefix("jobs/a") == 2
    assert list(store.list("jobs/")) == ["jobs/ab/3"]
    store.delete("jobs/ab/3")
    assert not store.exists("jobs/ab/3")


def test_a_range_of_an_object(store: ObjectStore) -> None:
    store.put_bytes("a", BODY)
    for start, end in ((0, 1), (10, None), (10, 2000), (len(BODY) - 1, len(BODY))):
        assert b"".join(store.iter("a", 1000, start=start, end=end)) == BODY[start:end]


def test_an_object_of_parts(store: ObjectStore) -> None:
    parts = [bytes([number]) * MIN_PART_BYTES for number in range(2)] + [b"end"]
    upload = store.begin("a/parts")
    tags = {
        number: store.put_part("a/parts", upload, number, parts[number - 1]) for number in (3, 1, 2)
    }
    assert not store.exists("a/parts")
    store.finish("a/parts", upload, [tags[number] for number in (1, 2, 3)])
    assert store.get_bytes("a/parts") == b"".join(parts)


def test_an_object_that_is_given_up_leaves_nothing(store: ObjectStore) -> None:
    upload = store.begin("a/parts")
    store.put_part("a/parts", upload, 1, b"x")
    store.abort("a/parts", upload)
    store.abort("a/parts", upload)
    assert not store.exists("a/parts")
    store.begin("a/stale")
    store.begin("b/stale")
    assert store.abort_stale("a/", before=time.time() - 3600) == 0
    assert store.abort_stale("a/", before=time.time() + 3600) == 1
    assert store.abort_stale("", before=time.time() + 3600) == 1


def test_a_presigned_address_gives_the_object_without_a_key(s3: ObjectStore) -> None:
    s3.put_bytes("models/a b/w.bin", BODY)
    url = s3.presigned("models/a b/w.bin", expires_s=60, filename="w.bin")
    answer = httpx.get(url, headers={"range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, BODY[10:20])
    assert answer.headers["content-disposition"] == 'attachment; filename="w.bin"'
    assert httpx.get(url.replace("X-Amz-Signature=", "X-Amz-Signature=0")).status_code == 403
