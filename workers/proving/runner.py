"""The thread of a worker process that proves final models, beside its short tasks."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from workers.context import Context
from workers.evals.run import Manner
from workers.proving.run import WAITS_S, prove_next

logger = logging.getLogger(__name__)


class Prover:
    """Asks for one model at a time in a thread of its own: loading one may take minutes.

    The thread ends by itself when nothing is due, and soon after `stopping` is set.
    """

    def __init__(
        self,
        context: Callable[[], Context],
        *,
        stopping: threading.Event,
        manner: Manner | None = None,
    ) -> None:
        self._context, self._stopping = context, stopping
        self._manner = manner or Manner(WAITS_S)
        # Its thread starts with its first work, so not in a process that is forked later.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proofs")
        self._free = threading.Lock()

    def poke(self) -> None:
        """Look for models that are due, unless the thread is at work: it looks when it is done."""
        if self._free.acquire(blocking=False):
            self._thread.submit(self._work)

    def _work(self) -> None:
        try:
            while prove_next(self._context(), stopping=self._stopping, manner=self._manner):
                pass
        except Exception:
            # Nobody reads the future of this thread; the lease runs out, and another try follows.
            logger.exception("The proof of a served model broke its worker")
            raise
        finally:
            self._free.release()
