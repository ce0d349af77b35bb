"""Open event streams of one API process: who follows what, and what wakes them.

All streams share one connection to Redis, one look at the database every second and a half (which
finds what Redis lost, and keys that are no longer good), and a few threads for reading. A stream
itself holds no thread, no database connection and at most `MAX_WAITING_BYTES` of events.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from api.errors import Unavailable, error_body
from api.services.event_feed import Feed, Follower
from api.services.event_reader import EventReader
from core.keys import Principal
from core.notify import Listener

logger = logging.getLogger(__name__)

#: Streams of one process, and of one project in it.
MAX_STREAMS, MAX_OF_PROJECT = 1000, 250
#: Seconds between two looks into the database.
LOOK_S = 1.5
#: Seconds of silence after which a comment is sent, so that proxies keep the connection.
HEARTBEAT_S = 15.0

HEARTBEAT = b": keep-alive\n\n"
#: How long a client should wait before it connects again, in milliseconds; sent at once, so that
#: proxies pass the answer's head on.
PREAMBLE = b"retry: 1000\n\n"

_CODES = {401: "invalid_api_key", 503: "database_unavailable", 500: "internal_error"}

Result = TypeVar("Result")


@dataclass(frozen=True)
class Place:
    """Where a stream begins: after `seq`.

    `unknown` is the event that the client named and that is not, or no longer, in the history.
    """

    seq: int
    unknown: str | None = None


class EventHub:
    """The streams; use it from one event loop and close it with `aclose`."""

    def __init__(self, sessions: sessionmaker[Session], broker_url: str) -> None:
        self._reader = EventReader(sessions)
        self._listener = Listener(broker_url, on_jobs=self._look, on_gap=self._look_at_all)
        self._feeds: dict[str, Feed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = False
        # Live events wait behind no client that reads a long history.
        self._live = ThreadPoolExecutor(2, thread_name_prefix="events-live")
        self._history = ThreadPoolExecutor(2, thread_name_prefix="events-history")

    def look(self, job_ids: Iterable[str]) -> None:
        """Say, from any thread, that jobs have new events."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._look, list(job_ids))

    def end_streams(self) -> None:
        """End every stream, also those that begin from now on; their clients connect elsewhere."""
        self._ending = True
        for follower in self._followers():
            follower.something.set()

    async def aclose(self) -> None:
        """Stop listening and reading; the streams have ended by then."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for feed in self._feeds.values():
            feed.stop()
        self._live.shutdown(wait=False)
        self._history.shutdown(wait=False)

    def check_room(self, project_id: str) -> None:
        """Raise `Unavailable` when no further stream is taken."""
        of = Counter(follower.project_id for follower in self._followers())
        if of.total() >= MAX_STREAMS or of[project_id] >= MAX_OF_PROJECT:
            raise Unavailable(
                f"This server has as many event streams open as it takes ({MAX_STREAMS} in all,"
                f" {MAX_OF_PROJECT} of one project); close some, or list events instead.",
                code="too_many_streams",
            )

    async def place(self, job_id: str, *, after: str | None, from_now: bool) -> Place:
        """Return where a stream begins: after that event, or with what comes, or at the start."""
        if after is not None:
            seq = await self._run(self._history, partial(self._reader.seq_of, job_id, after))
            return Place(seq or 0, unknown=after if seq is None else None)
        if from_now:
            return Place(await self._run(self._history, partial(self._reader.last_seq, job_id)))
        return Place(0)

    async def stream(
        self, job_id: str, principal: Principal, place: Place
    ) -> AsyncGenerator[bytes]:
        """Yield the job's events as server-sent events until it has ended or the key has.

        Call `check_room` before, whose answer can still carry a status.
        """
        try:
            self.check_room(principal.project_id)  # others may have come since
        except Unavailable as refusal:
            yield _named("error", error_body(refusal.status, refusal.message, code=refusal.code))
            return
        with self._following(job_id, principal) as (feed, follower):
            yield PREAMBLE
            if place.unknown is not None:
                yield _reset(job_id, place.unknown)
            try:
                await feed.ready.wait()
                async for chunk in self._events(follower, place.seq):
                    yield chunk
            except SQLAlchemyError as error:
                logger.error("Event stream of %s: %s", job_id, type(error).__name__)
                yield _failure(503, "The database cannot be used right now; connect again.")

    async def _events(self, follower: Follower, cursor: int) -> AsyncGenerator[bytes]:
        behind = True
        while True:
            if self._ending:
                return
            if follower.stopped:
                yield _failure(*follower.stopped)
                return
            if behind:
                read = partial(self._reader.after, follower.job_id, cursor)
                burst = await self._run(self._history, read)
                frames, behind = list(burst.frames), burst.more
                ended = None if behind else burst.ended
            else:
                if not await _within(HEARTBEAT_S, follower.something):
                    yield HEARTBEAT
                    continue
                given, behind = follower.take()
                frames = [frame for frame in given if frame.seq > cursor]
                ended = None if behind else follower.ended
            if frames:
                cursor = frames[-1].seq
                yield b"".join(frame.data for frame in frames)
            if ended:
                yield _done(follower.job_id, ended)
                return

    @contextmanager
    def _following(self, job_id: str, principal: Principal) -> Iterator[tuple[Feed, Follower]]:
        self._start()
        feed = self._feeds.get(job_id)
        if feed is None:
            feed = self._feeds[job_id] = Feed(
                job_id,
                read=lambda job, seq: self._run(self._live, partial(self._reader.after, job, seq)),
                last=lambda job: self._run(self._live, partial(self._reader.last_seq, job)),
            )
        follower = Follower(job_id, principal.key_id, principal.project_id)
        feed.followers.add(follower)
        try:
            yield feed, follower
        finally:
            feed.followers.discard(follower)
            if not feed.followers and self._feeds.get(job_id) is feed:
                del self._feeds[job_id]
                feed.stop()

    def _start(self) -> None:
        """Listen and look from the first stream on: a process without streams has no need to."""
        if not self._tasks:
            self._loop = asyncio.get_running_loop()
            self._tasks = [
                asyncio.create_task(self._listener.run()),
                asyncio.create_task(self._keep_looking()),
            ]

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look_into_database()
            except SQLAlchemyError as error:
                logger.warning("Event streams wait for the database: %s", type(error).__name__)

    async def _look_into_database(self) -> None:
        cursors = {feed.job_id: feed.cursor for feed in self._feeds.values() if feed.ready.is_set()}
        if cursors:
            self._look(await self._run(self._live, partial(self._reader.advanced, cursors)))
        keys = {follower.key_id for follower in self._followers()}
        if keys:
            live = await self._run(self._live, partial(self._reader.live_keys, keys))
            for follower in self._followers():
                if follower.key_id in keys - live:
                    follower.stop(401, "The API key of this stream is no longer good.")

    def _followers(self) -> list[Follower]:
        return [follower for feed in self._feeds.values() for follower in feed.followers]

    def _look(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            feed = self._feeds.get(job_id)
            if feed is not None:
                feed.look()

    def _look_at_all(self) -> None:
        self._look(list(self._feeds))

    def _run(self, threads: ThreadPoolExecutor, read: Callable[[], Result]) -> Awaitable[Result]:
        return asyncio.get_running_loop().run_in_executor(threads, read)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _named(event: str, data: object) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def _done(job_id: str, status: str) -> bytes:
    return _named("done", {"object": "fine_tuning.job.stream.done", "id": job_id, "status": status})


def _reset(job_id: str, event_id: str) -> bytes:
    """Say that the named event was forgotten, so that the history follows from its beginning."""
    return _named(
        "reset",
        {"object": "fine_tuning.job.stream.reset", "id": job_id, "unknown_event_id": event_id},
    )


def _failure(status: int, message: str) -> bytes:
    return _named("error", error_body(status, message, code=_CODES.get(status)))
