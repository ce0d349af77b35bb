"""An object store in memory that keeps the contract of `core.store.ObjectStore`."""

import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from core.errors import ObjectMissing, StoreUnreachable
from core.store import MIN_PART_BYTES, ObjectStore, Stored

ENDPOINT = "memory://store"


class MemoryStore(ObjectStore):
    """Keeps objects in a dict; while `down` is set, every call finds the store unreachable."""

    def __init__(self) -> None:
        self.bucket = "memory"
        self.objects: dict[str, bytes] = {}
        #: The parts of objects that are begun and neither finished nor aborted, by upload id.
        self.begun: dict[str, dict[int, bytes]] = {}
        self._numbers = itertools.count()
        self.down = False

    @property
    def endpoint(self) -> str:
        return ENDPOINT

    def ensure_bucket(self) -> None:
        self._check()

    def put_file(self, key: str, path: Path) -> str:
        return self.put_bytes(key, path.read_bytes())

    def put_stream(self, key: str, fileobj: IO[bytes]) -> Stored:
        data = fileobj.read()
        return Stored(len(data), self.put_bytes(key, data))

    def put_bytes(self, key: str, data: bytes) -> str:
        self._check()
        self.objects[key] = bytes(data)
        return hashlib.sha256(data).hexdigest()

    def get_file(self, key: str, path: Path) -> None:
        data = self.get_bytes(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def get_bytes(self, key: str) -> bytes:
        self._check()
        if key not in self.objects:
            raise ObjectMissing(key)
        return self.objects[key]

    def iter(
        self, key: str, chunk: int = 1 << 20, *, start: int = 0, end: int | None = None
    ) -> Iterator[bytes]:
        data = self.get_bytes(key)[start:end]
        return (data[start : start + chunk] for start in range(0, len(data), chunk))

    def begin(self, key: str) -> str:
        self._check()
        upload = f"{key}?{next(self._numbers)}"
        self.begun[upload] = {}
        return upload

    def put_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        self._check()
        if upload not in self.begun:
            raise ObjectMissing(key)
        self.begun[upload][number] = bytes(data)
        return hashlib.sha256(data).hexdigest()

    def finish(self, key: str, upload: str, tags: Sequence[str]) -> None:
        self._check()
        parts = self.begun.pop(upload)
        numbered = [(number, parts[number]) for number in range(1, len(tags) + 1)]
        assert tags == [hashlib.sha256(data).hexdigest() for _, data in numbered]
        assert all(len(data) >= MIN_PART_BYTES for _, data in numbered[:-1])
        self.objects[key] = b"".join(data for _, data in numbered)

    def abort(self, key: str, upload: str) -> None:
        self._check()
        assert upload.startswith(f"{key}?")
        self.begun.pop(upload, None)

    def abort_stale(self, prefix: str, *, before: float) -> int:
        self._check()
        stale = [upload for upload in self.begun if upload.startswith(prefix)]
        if before < time.time():
            return 0
        for upload in stale:
            del self.begun[upload]
        return len(stale)

    def presigned(self, key: str, *, expires_s: int, filename: str) -> str:
        return f"{ENDPOINT}/{key}?expires={expires_s}&filename={filename}"

    def exists(self, key: str) -> bool:
        self._check()
        return key in self.objects

    def delete(self, key: str) -> None:
        self._check()
        self.objects.pop(key, None)

    def delete_prefix(self, prefix: str) -> int:
        folder = prefix.rstrip("/") + "/"
        keys = list(self.list(folder))
        for key in keys:
            self.delete(key)
        return len(keys)

    def list(self, prefix: str) -> Iterator[str]:
        self._check()
        return iter(sorted(key for key in self.objects if key.startswith(prefix)))

    def _check(self) -> None:
        if self.down:
            raise StoreUnreachable(ENDPOINT, "down")
