"""One inspection: fed while the file arrives, done by a process that may lag behind."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rft.dataset import Report, Validator
from rft.dataset.lines import BOM

from core.errors import RftError
from core.process.environment import clean_environment

#: What may wait in memory for the process, in bytes; a faster file is read again from the store.
MAX_LAG_BYTES = 32 * 1024 * 1024
#: Up to here a process would cost more than the inspection itself, in bytes.
SMALL_BYTES = 1024 * 1024

#: Gives the bytes of the stored file from an offset on.
Rest = Callable[[int], Iterator[bytes]]


class InspectionFailed(RftError):
    """The process that inspects a file ended without a report."""

    code = "inspection_failed"


class _Abandoned(Exception):
    """Nobody wants the report any more."""


def inspect_bytes(data: bytes) -> Report:
    """Inspect a small file in this thread."""
    validator = Validator("auto")
    validator.feed(data)
    return validator.close()


class Inspection:
    """The inspection of one file. `feed`, then `end` or `abandon`; none of them waits.

    `report` becomes done once the process has read everything. It raises `InspectionFailed` when
    the process died, and a `StorageError` when what was left over could not be read.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._lag = 0
        self._fed = 0
        self._detached_at: int | None = None
        self._rest: Rest | None = None
        self._abandoned = threading.Event()
        #: Whether already the first row is no object, so that the file will be refused.
        self.hopeless = False
        self.report: Future[Report] = threads.submit(self._run)

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
        """Give up; the process is ended and `report` becomes an `InspectionFailed`."""
        self._abandoned.set()
        self._waiting.put(None)
        self.report.cancel()

    def _run(self) -> Report:
        head = self._waiting.get()
        if head is None:
            raise InspectionFailed("The inspection of a file ended before its first byte.")
        self.hopeless = not head.removeprefix(BOM).lstrip().startswith(b"{")
        process = _start()
        try:
            assert process.stdin is not None and process.stdout is not None
            with process.stdin as sink:
                for chunk in self._chunks(head):
                    sink.write(chunk)
            return Report.from_dict(json.load(process.stdout))
        except (BrokenPipeError, json.JSONDecodeError, _Abandoned) as error:
            raise InspectionFailed("The inspection of a file ended without a report.") from error
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    def _chunks(self, head: bytes) -> Iterator[bytes]:
        chunk: bytes | None = head
        while chunk is not None:
            if self._abandoned.is_set():
                raise _Abandoned
            yield chunk
            with self._lock:
                self._lag -= len(chunk)
            chunk = self._waiting.get()
        if self._abandoned.is_set():
            raise _Abandoned
        if self._detached_at is not None and self._rest is not None:
            for chunk in self._rest(self._detached_at):
                if self._abandoned.is_set():
                    raise _Abandoned
                yield chunk


def _start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "core.inspection.child", "auto"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(os.environ),
    )
