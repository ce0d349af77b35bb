"""The object store against a real S3 server."""

import io
from pathlib import Path

import pytest
from pydantic import SecretStr

from core.errors import ObjectMissing, StoreRefused, StoreUnreachable
from core.settings import Settings
from core.store import ObjectStore, Stored
from tests.servers import free_ports

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def test_bytes_files_and_streams_come_back(s3: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "hello"
    source.write_bytes(b"hello")
    assert s3.put_bytes("a/bytes", b"hello") == HELLO
    assert s3.put_file("a/file", source) == HELLO
    assert s3.put_stream("a/stream", io.BytesIO(b"hello")) == Stored(5, HELLO)
    for key in ("a/bytes", "a/file", "a/stream"):
        assert s3.get_bytes(key) == b"hello"
        assert b"".join(s3.iter(key, 2)) == b"hello"
        s3.get_file(key, tmp_path / "new folder" / "copy")
        assert (tmp_path / "new folder" / "copy").read_bytes() == b"hello"


def test_a_stream_of_several_parts(s3: ObjectStore) -> None:
    data = bytes(range(256)) * 65536  # 16 MiB: two parts
    stored = s3.put_stream("big", io.BytesIO(data))
    assert stored.bytes == len(data)
    assert s3.get_bytes("big") == data


def test_an_empty_object(s3: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    s3.put_file("empty", tmp_path / "empty")
    assert s3.get_bytes("empty") == b""
    assert s3.exists("empty")


def test_a_failing_stream_stores_nothing_and_keeps_its_error(s3: ObjectStore) -> None:
    class TooLarge(ValueError):
        pass

    class Stream(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 20_000_000:
                raise TooLarge
            return super().read(size)

    with pytest.raises(TooLarge):
        s3.put_stream("big", Stream(bytes(40_000_000)))
    assert not s3.exists("big")


def test_missing_objects_are_named(s3: ObjectStore, tmp_path: Path) -> None:
    for call in (
        lambda: s3.get_bytes("no/such"),
        lambda: s3.get_file("no/such", tmp_path / "x"),
        lambda: s3.iter("no/such"),
    ):
        with pytest.raises(ObjectMissing, match="'no/such'"):
            call()
    assert not s3.exists("no/such")
    assert not (tmp_path / "x").exists()
    s3.delete("no/such")


def test_a_prefix_is_a_folder(s3: ObjectStore) -> None:
    for key in ("jobs/a/1", "jobs/a/2/3", "jobs/ab/1"):
        s3.put_bytes(key, b"")
    assert [*s3.list("jobs/a/")] == ["jobs/a/1", "jobs/a/2/3"]
    assert s3.delete_prefix("jobs/a") == 2
    assert [*s3.list("")] == ["jobs/ab/1"]
    assert s3.delete_prefix("jobs/a") == 0


def test_a_bucket_is_made_once(s3: ObjectStore) -> None:
    s3.put_bytes("kept", b"1")
    s3.ensure_bucket()
    assert s3.get_bytes("kept") == b"1"


def test_a_wrong_key_is_refused_with_a_sentence(s3_settings: Settings) -> None:
    wrong = s3_settings.model_copy(update={"s3_secret_access_key": SecretStr("wrong")})
    with pytest.raises(StoreRefused, match=r"SignatureDoesNotMatch.*access key"):
        ObjectStore.from_settings(wrong).put_bytes("a", b"")


def test_a_missing_bucket_is_refused_not_taken_for_a_missing_object(s3_settings: Settings) -> None:
    with pytest.raises(StoreRefused, match=r"NoSuchBucket.*RFT_S3_BUCKET"):
        ObjectStore.from_settings(s3_settings).get_bytes("a")


def test_an_unreachable_store_is_named(settings: Settings) -> None:
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    gone = settings.model_copy(
        update={
            "s3_endpoint_url": endpoint,
            "s3_access_key_id": "a",
            "s3_secret_access_key": SecretStr("b"),
        }
    )
    store = ObjectStore.from_settings(gone)
    for call in (store.ensure_bucket, lambda: store.get_bytes("a"), lambda: [*store.list("")]):
        with pytest.raises(StoreUnreachable, match=rf"{endpoint}.*RFT_S3_ENDPOINT_URL"):
            call()
