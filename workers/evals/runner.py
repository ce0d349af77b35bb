"""The threads of a worker process that work on runs, beside its short tasks."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from workers.context import Context
from workers.evals.run import Manner, run_next

logger = logging.getLogger(__name__)

#: Runs that one worker process works on at a time.
PLACES = 2


class EvalRunner:
    """Works on queued runs in threads of its own: a run may take hours, and no task waits for it.

    The threads end by themselves when nothing is queued, and soon after `stopping` is set.
    """

    def __init__(
        self,
        context: Callable[[], Context],
        *,
        owner: Callable[[], str],
        stopping: threading.Event,
        manner: Manner | None = None,
    ) -> None:
        self._context, self._owner = context, owner
        self._stopping, self._manner = stopping, manner or Manner()
        # Its threads start with their first work, so not in a process that is forked later.
        self._threads = ThreadPoolExecutor(PLACES, thread_name_prefix="evals")
        self._free = threading.Semaphore(PLACES)

    def poke(self) -> None:
        """Look for queued runs, unless every place is taken: who has one looks when it is done."""
        if not self._free.acquire(blocking=False):
            return
        self._threads.submit(self._work)

    def _work(self) -> None:
        try:
            while run_next(
                self._context(),
                owner=self._owner(),
                stopping=self._stopping,
                manner=self._manner,
            ):
                pass
        except Exception:
            # Nobody reads the future of this thread; the lease runs out, and the run goes on.
            logger.exception("A run of an eval broke its worker")
            raise
        finally:
            self._free.release()
