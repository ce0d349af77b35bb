"""Inspections of uploads: what an answer waits for, and what is settled after it."""

import asyncio
import logging
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial

from rft.dataset import Report
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from starlette.concurrency import run_in_threadpool

from core.errors import RftError
from core.inspection import Inspection, TooSlowToRead, cannot_be_rows, inspect_here
from core.inspection.apart import SMALL_BYTES
from core.inspection.settle import give_up, hand_over, settle
from core.models import File
from core.store import ObjectStore

logger = logging.getLogger(__name__)

#: Files that are inspected at the same time while they arrive. A sender may take as long as he
#: likes, so further ones have other places, once they are complete.
PLACES, STORED_PLACES = 8, 4
#: The answer to an upload waits for the report on a file up to this size, in bytes.
AWAITED_BYTES = 64 * 1024 * 1024
#: Longest such wait, in seconds.
WAIT_S = 60.0
#: How long the answer to a larger one waits, as a share of the time that its bytes took.
PATIENCE = 0.1


class Inspections:
    """What inspects the uploads of this process."""

    def __init__(self, sessions: sessionmaker[Session], store: ObjectStore) -> None:
        self.store = store
        self._sessions = sessions
        self._threads = ThreadPoolExecutor(PLACES, thread_name_prefix="inspection")
        self._stored_threads = ThreadPoolExecutor(STORED_PLACES, thread_name_prefix="stored")
        self._arriving: set[Inspection] = set()
        self._stored: set[Inspection] = set()

    def of_arriving(self) -> Inspection | None:
        """Start one that is fed, or return None while all places are taken."""
        if len(self._arriving) >= PLACES:
            return None
        return self._listed(Inspection(self._threads), self._arriving)

    def of_stored(self) -> Inspection:
        """Start one of a file that is stored, when it is its turn."""
        return self._listed(Inspection(self._stored_threads, stored=True), self._stored)

    @property
    def waiting(self) -> int:
        """How many inspections have not ended."""
        return len(self._arriving) + len(self._stored)

    def settle_later(self, inspection: Inspection, file: File) -> None:
        """Write down the report on a recorded file once there is one; this may be at once."""
        inspection.report.add_done_callback(partial(self._settle, file.id, file.sha256))

    def close(self) -> None:
        """End every inspection, and leave the files that wait for theirs to a worker."""
        for inspection in [*self._arriving, *self._stored]:
            inspection.abandon()
        self._threads.shutdown(wait=False)
        self._stored_threads.shutdown(wait=False)

    def _listed(self, inspection: Inspection, among: set[Inspection]) -> Inspection:
        among.add(inspection)
        inspection.report.add_done_callback(lambda _: among.discard(inspection))
        return inspection

    def _settle(self, file_id: str, sha256: str, report: "Future[Report]") -> None:
        try:
            with self._sessions.begin() as session:
                try:
                    settle(session, file_id, sha256, report.result())
                except TooSlowToRead as refusal:
                    give_up(session, file_id, refusal.message)
        except (CancelledError, RftError, SQLAlchemyError, OSError) as error:
            logger.warning("%s waits for a worker to inspect it: %r", file_id, error)
            self._hand_over(file_id)

    def _hand_over(self, file_id: str) -> None:
        try:
            with self._sessions.begin() as session:
                hand_over(session, file_id)
        except SQLAlchemyError as error:
            logger.warning("%s will be inspected when it is overdue: %s", file_id, error)


class Watch:
    """The inspection of one upload, if it needs one: what happens to the parts of its file.

    `skip` before the first part, when the file's purpose asks for none; `feed` with each part;
    then `report`, `settle` once the file is recorded, and `close` in any case.
    """

    def __init__(self, inspections: Inspections) -> None:
        self._inspections = inspections
        self._started = time.monotonic()
        self._skipped = False
        self._begun = False
        self._hopeless = False
        self._only: bytes | None = None
        self.running: Inspection | None = None

    def skip(self) -> None:
        """Inspect nothing."""
        self._skipped = True

    def feed(self, part: bytes) -> None:
        """Take the next part; a file of a single small one needs no process."""
        if self._skipped:
            return
        if not self._begun:
            self._begun = True
            self._hopeless = cannot_be_rows(part)
            if len(part) <= SMALL_BYTES:
                self._only = part
                return
            self.running = self._inspections.of_arriving()
        if self.running is not None:
            self.running.feed(part)

    async def report(self, key: str, size: int) -> Report | None:
        """Return the report on the stored file, or None while it is still inspected.

        Raises `TooSlowToRead`.
        """
        if self._only is not None:
            return await run_in_threadpool(inspect_here, [self._only])
        if self.running is None:
            self.running = self._inspections.of_stored()

        def rest(offset: int) -> Iterator[bytes]:
            return self._inspections.store.iter(key, start=offset)

        self.running.end(rest)
        patience = PATIENCE * (time.monotonic() - self._started)
        if size <= AWAITED_BYTES or self._hopeless:
            patience = WAIT_S
        waiting = asyncio.wrap_future(self.running.report)
        # Looked at here, so that one which fails after this wait is not logged as forgotten.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([waiting], timeout=patience)
        if not waiting.done():
            return None
        try:
            return waiting.result()
        except TooSlowToRead:
            raise
        except (RftError, OSError) as error:
            # The bytes are good; what they hold, a worker will find out.
            logger.warning("The inspection of %s failed: %s", key, error)
            return None

    def settle(self, file: File) -> None:
        """Have the report on a recorded file written down, if it waits for one; not on the loop."""
        if self.running is not None and file.status == "uploaded":
            self._inspections.settle_later(self.running, file)
            self.running = None

    def close(self) -> None:
        """End the inspection, unless a recorded file waits for its report."""
        if self.running is not None:
            self.running.abandon()
