"""Object stores that misbehave."""

import threading
from pathlib import Path

from core.errors import StoreUnreachable
from core.store import ObjectStore


class FlakyStore(ObjectStore):
    """A store whose uploads of some keys fail a given number of times."""

    def __init__(self, store: ObjectStore, fragment: str, failures: int) -> None:
        super().__init__(store._client, store.bucket)
        self.fragment, self.left = fragment, failures

    def put_file(self, key: str, path: Path) -> str:
        if self.fragment in key and self.left:
            self.left -= 1
            raise StoreUnreachable(self.endpoint, "test")
        return super().put_file(key, path)


class SlowStore(ObjectStore):
    """A store whose upload of checkpoints waits until it is let go on."""

    def __init__(self, store: ObjectStore, fragment: str = "/checkpoints/") -> None:
        super().__init__(store._client, store.bucket)
        self.fragment = fragment
        self.begun, self.go = threading.Event(), threading.Event()

    def put_file(self, key: str, path: Path) -> str:
        if self.fragment in key:
            self.begun.set()
            assert self.go.wait(60)
        return super().put_file(key, path)
