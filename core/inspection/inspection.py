"""One inspection: fed while the file arrives, done by a process that may lag behind."""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rft.dataset import Report

from core.inspection.apart import InspectionFailed, inspect_apart

#: What may wait in memory for the process, in bytes; a faster file is read again from the store.
MAX_LAG_BYTES = 32 * 1024 * 1024

#: Gives the bytes of the stored file from an offset on.
Rest = Callable[[int], Iterator[bytes]]


class Inspection:
    """The inspection of one file. `feed`, then `end` or `abandon`; none of them waits.

    A file that is `stored` already is not fed, but read from its beginning once `end` says from
    where. `report` becomes done once the process has read everything. It raises `InspectionFailed`
    when the process died, and a `StorageError` when what was left over could not be read.
    """

    def __init__(self, threads: ThreadPoolExecutor, *, stored: bool = False) -> None:
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._lag = 0
        self._fed = 0
        self._detached_at = 0 if stored else None
        self._rest: Rest | None = None
        self._abandoned = threading.Event()
        self.report: Future[Report] = threads.submit(lambda: inspect_apart(self._chunks()))

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file; nothing is copied."""
        with self._lock:
            if self._detached_at is None and self._lag and self._lag + len(data) > MAX_LAG_BYTES:
                self._detached_at = self._fed
            self._fed += len(data)
            if self._detached_at is not None:
                return
            self._lag += len(data)
        self._waiting.put(data)

    def end(self, rest: Rest) -> None:
        """Say that the file is complete; `rest` reads again what had to be left out."""
        self._rest = rest
        self._waiting.put(None)

    def abandon(self) -> None:
        """Give up: the process gets nothing more, `report` is cancelled or `InspectionFailed`."""
        self._abandoned.set()
        self._waiting.put(None)
        self.report.cancel()

    def _chunks(self) -> Iterator[bytes]:
        while (chunk := self._waiting.get()) is not None:
            self._check()
            yield chunk
            with self._lock:
                self._lag -= len(chunk)
        self._check()
        if self._detached_at is not None and self._rest is not None:
            for chunk in self._rest(self._detached_at):
                self._check()
                yield chunk

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise InspectionFailed("The inspection of a file was given up: nobody wants it.")
