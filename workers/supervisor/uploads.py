"""Store what the trainer wrote, beside the reading of its reports."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from workers.supervisor.retry import retrying

#: Seconds between two looks at an upload under way.
_POLL_S = 0.05


class Uploads:
    """Run uploads one after the other, in the order given, on a thread of their own.

    An upload that the store does not take is tried again. When the last try fails, ``check`` raises
    its error and no later upload runs, so what is stored never has a gap.

    Args:
        retry_s: waits between tries, in seconds.
    """

    def __init__(self, retry_s: tuple[float, ...]) -> None:
        self._retry_s = retry_s
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="uploads")
        self._waiting: list[Future[None]] = []
        self._intact = True

    def submit(self, upload: Callable[[], None]) -> None:
        """Queue one upload."""
        self._waiting.append(self._thread.submit(self._run, upload))

    def check(self) -> None:
        """Raise the error of the first upload that failed, if one did."""
        while self._waiting and self._waiting[0].done():
            self._waiting.pop(0).result()

    def drain(self, *, keep_on: Callable[[], bool], poll_s: float = _POLL_S) -> bool:
        """Wait until everything is stored, or until ``keep_on`` says no; raises as ``check``.

        Returns whether everything is stored.
        """
        self.check()
        while self._waiting and keep_on():
            time.sleep(poll_s)
            self.check()
        return not self._waiting

    def close(self, *, keep_on: Callable[[], bool] = lambda: True) -> None:
        """Give up what is not stored yet; wait for the upload under way while ``keep_on`` says so.

        One that is left alone ends by itself, and what it wants to write is refused by the fence.
        """
        self._stopping.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
        while not all(upload.done() for upload in self._waiting) and keep_on():
            time.sleep(_POLL_S)

    def _run(self, upload: Callable[[], None]) -> None:
        if not self._intact:
            return
        self._intact = False
        retrying(upload, waits_s=self._retry_s, stop=self._stopping)
        self._intact = True
