"""An object store in memory that keeps the contract of `core.store.ObjectStore`."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from core.errors import ObjectMissing, StoreUnreachable
from core.store import ObjectStore, Stored

ENDPOINT = "memory://store"


class MemoryStore(ObjectStore):
    """Keeps objects in a dict; while `down` is set, every call finds the store unreachable."""

    def __init__(self) -> None:
        self.bucket = "memory"
        self.objects: dict[str, bytes] = {}
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

    def iter(self, key: str, chunk: int = 1 << 20) -> Iterator[bytes]:
        data = self.get_bytes(key)
        return (data[start : start + chunk] for start in range(0, len(data), chunk))

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
