"""The object store: S3 or anything that speaks its protocol, through boto3."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from core.errors import ObjectMissing, StoreRefused, StoreUnreachable
from core.settings import Settings, get_settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

#: Error codes with which S3 says that a key does not exist (HEAD answers carry only "404").
_MISSING = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchUpload"})
#: The least bytes of a part that is not the last one of its object.
MIN_PART_BYTES = 5 * 1024 * 1024
#: The most keys one S3 delete call takes.
_DELETE_BATCH = 1000

# Bounded: a call gives up after 4 tries, each with 5 s to connect and 60 s between bytes.
# Some S3-compatible stores refuse the newer default of trailing checksums; manifests carry sha256.
_CONFIG = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 4},
    signature_version="s3v4",
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
_TRANSFER = TransferConfig(max_concurrency=4)


class Stored(NamedTuple):
    """What a streamed upload turned out to be."""

    bytes: int
    sha256: str


class ObjectStore:
    """One bucket. Every method raises StoreUnreachable or StoreRefused; reads also ObjectMissing.

    Uploads are atomic: a key holds the whole new object or what it held before.
    """

    def __init__(self, client: S3Client, bucket: str, *, signer: S3Client | None = None) -> None:
        self.bucket = bucket
        self._client = client
        self._signer = signer or client

    @classmethod
    def from_settings(cls, settings: Settings | None = None) -> ObjectStore:
        """Return the store that the settings name; nothing is contacted yet."""
        settings = settings or get_settings()
        public = settings.s3_public_url
        signer = None if public is None else _client(settings, public)
        return cls(_client(settings, settings.s3_endpoint_url), settings.s3_bucket, signer=signer)

    @property
    def endpoint(self) -> str:
        """The URL that error messages name."""
        return self._client.meta.endpoint_url

    def ensure_bucket(self) -> None:
        """Create the bucket unless it exists; also a cheap check that the store answers."""
        try:
            with self._translated():
                self._client.head_bucket(Bucket=self.bucket)
        except ObjectMissing:
            with self._translated():
                self._client.create_bucket(Bucket=self.bucket)

    def put_file(self, key: str, path: Path) -> str:
        """Upload a file and return its sha256."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            with self._translated(key):
                self._client.upload_fileobj(file, self.bucket, key, Config=_TRANSFER)
        return digest

    def put_stream(self, key: str, fileobj: IO[bytes]) -> Stored:
        """Upload what `fileobj.read` gives, in bounded memory; an exception of it propagates."""
        reader = _HashingReader(fileobj)
        with self._translated(key):
            self._client.upload_fileobj(
                cast("IO[bytes]", reader), self.bucket, key, Config=_TRANSFER
            )
        return reader.stored()

    def put_bytes(self, key: str, data: bytes) -> str:
        """Upload bytes and return their sha256."""
        with self._translated(key):
            self._client.put_object(Bucket=self.bucket, Key=key, Body=data)
        return hashlib.sha256(data).hexdigest()

    def get_file(self, key: str, path: Path) -> None:
        """Download to `path`, whose folder is made; the file appears only when complete."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._translated(key):
            self._client.download_file(self.bucket, key, str(path), Config=_TRANSFER)

    def get_bytes(self, key: str) -> bytes:
        """Return a small object's content."""
        with self._translated(key):
            return self._client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def iter(
        self, key: str, chunk: int = 1 << 20, *, start: int = 0, end: int | None = None
    ) -> Iterator[bytes]:
        """Open an object and return its content in chunks; a missing key raises at the call.

        `start` and `end` cut out a range of bytes, the end exclusive; it must lie in the object.
        """
        with self._translated(key):
            if start or end is not None:
                span = f"bytes={start}-{'' if end is None else end - 1}"
                reply = self._client.get_object(Bucket=self.bucket, Key=key, Range=span)
            else:
                reply = self._client.get_object(Bucket=self.bucket, Key=key)
        return self._chunks(key, reply["Body"].iter_chunks(chunk))

    def presigned(self, key: str, *, expires_s: int, filename: str) -> str:
        """Return an address that gives the object without a key, as a file of this name.

        It is made here, without asking the store whether the object is there, and works for
        `expires_s` seconds. The name must be ASCII.
        """
        disposition = f'attachment; filename="{filename}"'
        with self._translated(key):
            return self._signer.generate_presigned_url(
                "get_object",
                Params={
                    "Bucket": self.bucket,
                    "Key": key,
                    "ResponseContentDisposition": disposition,
                },
                ExpiresIn=expires_s,
            )

    def _chunks(self, key: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._translated(key):
            yield from chunks

    def begin(self, key: str) -> str:
        """Begin an object that is stored in parts, and return the id that the parts name."""
        with self._translated(key):
            return self._client.create_multipart_upload(Bucket=self.bucket, Key=key)["UploadId"]

    def put_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        """Store part `number`, from 1, of a begun object and return its tag.

        Every part but the last must have `MIN_PART_BYTES`; parts may be stored side by side.
        """
        with self._translated(key):
            return self._client.upload_part(
                Bucket=self.bucket, Key=key, UploadId=upload, PartNumber=number, Body=data
            )["ETag"]

    def finish(self, key: str, upload: str, tags: Sequence[str]) -> None:
        """Make the object of its parts, whose `tags` are in order; only now the key holds it."""
        with self._translated(key):
            self._client.complete_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload,
                MultipartUpload={
                    "Parts": [
                        {"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)
                    ]
                },
            )

    def abort(self, key: str, upload: str) -> None:
        """Give up a begun object and let go of its parts; one that is gone is fine."""
        try:
            with self._translated(key):
                self._client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload)
        except ObjectMissing:
            return

    def abort_stale(self, prefix: str, *, before: float) -> int:
        """Give up every object below `prefix` begun before this unix time, and say how many.

        They belong to processes that were killed: nobody else leaves one behind.
        """
        pages = self._client.get_paginator("list_multipart_uploads")
        with self._translated(prefix):
            stale = [
                (entry["Key"], entry["UploadId"])
                for page in pages.paginate(Bucket=self.bucket, Prefix=prefix)
                for entry in page.get("Uploads", [])
                if entry["Initiated"].timestamp() < before
            ]
        for key, upload in stale:
            self.abort(key, upload)
        return len(stale)

    def exists(self, key: str) -> bool:
        """Say whether an object lies under the key."""
        try:
            with self._translated(key):
                self._client.head_object(Bucket=self.bucket, Key=key)
        except ObjectMissing:
            return False
        return True

    def delete(self, key: str) -> None:
        """Delete one object; a missing one is fine."""
        with self._translated(key):
            self._client.delete_object(Bucket=self.bucket, Key=key)

    def delete_prefix(self, prefix: str) -> int:
        """Delete every object below a folder-like prefix and return how many there were.

        `jobs/a` names `jobs/a/…` and never `jobs/ab/…`.
        """
        folder = prefix.rstrip("/") + "/"
        keys = [*self.list(folder)]
        for start in range(0, len(keys), _DELETE_BATCH):
            batch = keys[start : start + _DELETE_BATCH]
            with self._translated(folder):
                reply = self._client.delete_objects(
                    Bucket=self.bucket,
                    Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True},
                )
            if errors := reply.get("Errors"):
                raise StoreRefused(self.endpoint, f"deleting {folder}: {errors[0].get('Code')}")
        return len(keys)

    def list(self, prefix: str) -> Iterator[str]:
        """Yield every key that starts with `prefix`, in order."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._translated(prefix):
            for page in pages.paginate(Bucket=self.bucket, Prefix=prefix):
                for entry in page.get("Contents", []):
                    yield entry["Key"]

    @contextmanager
    def _translated(self, key: str = "") -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _MISSING:
                raise ObjectMissing(key) from error
            raise StoreRefused(self.endpoint, code or str(error)) from error
        except (BotoCoreError, Boto3Error) as error:
            raise StoreUnreachable(self.endpoint, type(error).__name__) from error


def _client(settings: Settings, endpoint_url: str | None) -> S3Client:
    secret = settings.s3_secret_access_key
    return boto3.client(
        "s3",
        endpoint_url=endpoint_url,
        region_name=settings.s3_region,
        aws_access_key_id=settings.s3_access_key_id,
        aws_secret_access_key=secret.get_secret_value() if secret else None,
        config=_CONFIG.merge(Config(s3={"addressing_style": "path"})) if endpoint_url else _CONFIG,
    )


class _HashingReader:
    """Counts and hashes what passes through; it cannot seek, so it is read once, in order."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self._bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        self._bytes += len(data)
        return data

    def stored(self) -> Stored:
        return Stored(self._bytes, self._digest.hexdigest())
