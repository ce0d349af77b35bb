"""One job's live events in one API process: read once, given to every stream that follows it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

from api.services.event_reader import Burst, Frame

logger = logging.getLogger(__name__)

#: Bytes that wait for one client; with more it goes back to reading from the database.
MAX_WAITING_BYTES = 256 * 1024
#: Seconds before a failed read is tried again.
_RETRY_S = 1.0


class Follower:
    """What waits for one stream.

    `behind` says that events were left out here: they are in the database. `ended` is the job's
    last status once everything was given. `stopped` says why the stream must stop: an HTTP status
    and a sentence.
    """

    def __init__(self, job_id: str, key_id: str, project_id: str) -> None:
        self.job_id, self.key_id, self.project_id = job_id, key_id, project_id
        self.behind = False
        self.ended: str | None = None
        self.stopped: tuple[int, str] | None = None
        self.something = asyncio.Event()
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def give(self, burst: Burst) -> None:
        """Add new events; a client that is too slow loses them here, and reads them later."""
        for frame in burst.frames:
            self._frames.append(frame)
            self._bytes += len(frame.data)
        if self._bytes > MAX_WAITING_BYTES:
            self._forget()
            self.behind = True
        if burst.ended and not burst.more:
            self.ended = burst.ended
        self.something.set()

    def take(self) -> tuple[list[Frame], bool]:
        """Return what waits, in order, and whether the database has to be read instead."""
        frames, behind = list(self._frames), self.behind
        self._forget()
        self.behind = False
        self.something.clear()
        return ([], True) if behind else (frames, False)

    def stop(self, status: int, message: str) -> None:
        """Have the stream stop."""
        self.stopped = (status, message)
        self.something.set()

    def _forget(self) -> None:
        self._frames.clear()
        self._bytes = 0


class Feed:
    """Reads a job's new events when told to, for as long as anybody follows.

    `read` and `last` are the reads of `EventReader`, made awaitable.
    """

    def __init__(
        self,
        job_id: str,
        *,
        read: Callable[[str, int], Awaitable[Burst]],
        last: Callable[[str], Awaitable[int]],
    ) -> None:
        self.job_id = job_id
        self.followers: set[Follower] = set()
        #: The last event that was given; meaningful once `ready` is set.
        self.cursor = 0
        self.ready = asyncio.Event()
        self._read, self._last = read, last
        self._new = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    def look(self) -> None:
        """Read what is new; many calls at once cost one read."""
        self._new.set()

    def stop(self) -> None:
        """Stop reading; nobody follows any more."""
        self._task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.error("Events of %s cannot be shown", self.job_id, exc_info=error)
        for follower in self.followers:
            follower.stop(500, "The server had an error while reading events; list them instead.")

    async def _run(self) -> None:
        while True:
            try:
                await self._once()
            except SQLAlchemyError as error:
                logger.warning("Events of %s: %s; reading again", self.job_id, type(error).__name__)
                self._new.set()
                await asyncio.sleep(_RETRY_S)

    async def _once(self) -> None:
        if not self.ready.is_set():
            # Followers read up to here by themselves: nothing falls between the two.
            self.cursor = await self._last(self.job_id)
            self.ready.set()
        await self._new.wait()
        self._new.clear()
        burst = await self._read(self.job_id, self.cursor)
        if burst.frames:
            self.cursor = burst.frames[-1].seq
        if burst.more:
            self._new.set()
        for follower in self.followers:
            follower.give(burst)
