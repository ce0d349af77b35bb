"""Hold the lease while the trainer works, and hear what the API wants of the job."""

import logging
import threading
import time

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from core.errors import StaleFence
from core.lease import heartbeat

logger = logging.getLogger(__name__)


class Heartbeat:
    """Extend a job's lease from a thread; use as a context.

    ``status`` is the job's status as last seen; ``lost`` becomes true when this holder must stop:
    the job was cancelled or taken over, or the database was silent for a whole lease.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        job_id: str,
        fence: int,
        *,
        ttl_s: float,
        interval_s: float,
    ) -> None:
        self._sessions = sessions
        self._job_id, self._fence = job_id, fence
        self._ttl_s, self._interval_s = ttl_s, interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{job_id}", daemon=True)
        self.status = "running"
        self.lost = False

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._beat()
        finally:
            # However beating ends before it is told to: nobody extends the lease any more.
            self.lost = not self._stop.is_set()

    def _beat(self) -> None:
        """Beat until told to stop; return early when the job is lost."""
        held_until = time.monotonic() + self._ttl_s
        while not self._stop.wait(self._interval_s):
            asked = time.monotonic()
            try:
                with self._sessions.begin() as session:
                    self.status = heartbeat(session, self._job_id, self._fence, self._ttl_s)
                held_until = asked + self._ttl_s
            except StaleFence:
                return
            except SQLAlchemyError as error:
                logger.warning("No heartbeat for %s: %s", self._job_id, error)
                # Past this moment another worker may hold the job.
                if time.monotonic() > held_until:
                    return
