"""The fake store and the real one keep the same contract."""

import hashlib
import io
from pathlib import Path

import pytest

from core.errors import ObjectMissing
from core.store import ObjectStore, Stored
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
