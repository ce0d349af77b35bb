"""Telling other processes, right after a commit, that there is something new in the database.

What is said is never more than "look": the database alone knows what happened. So whatever gets
lost on the way, with Redis away above all, costs time and nothing else: readers look by themselves
every other second.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis, RedisError
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

from core.models import Event, Outbox
from core.queue import DELIVER, LIGHT

logger = logging.getLogger(__name__)

#: The pub/sub channel that carries the ids of jobs with new events, as a JSON list.
CHANNEL = "rft:events"

#: Seconds that Redis gets for one answer, and between two tries to reach one that is away.
_ANSWER_S, _RETRY_S = 1.0, 1.0
#: Seconds after which a wake-up that no worker took says nothing new.
_WAKE_EXPIRES_S = 30

_Ids = Callable[[Iterable[str]], None]

# Keys of `Session.info`: what the session has added since its last commit.
_JOBS, _WEBHOOKS = "notify.jobs", "notify.webhooks"


class Announcer:
    """Say after each commit which jobs have new events, and that webhooks wait for delivery.

    One per process. The words leave from a thread of its own, so that a commit never waits for
    Redis; the thread starts with the first commit that has something to say. `on_jobs`, when given,
    hears of this process' own commits directly, in the thread that committed.
    """

    def __init__(self, broker_url: str, *, on_jobs: _Ids | None = None) -> None:
        self._broker_url, self._on_jobs = broker_url, on_jobs
        self._something = threading.Condition()
        self._jobs: set[str] = set()
        self._webhooks = self._closed = False
        self._thread: threading.Thread | None = None
        self._away = Away("publishing")

    def attach(self, sessions: sessionmaker[Session]) -> None:
        """Listen to every session that the factory makes from now on."""
        event.listen(sessions, "after_flush", _collect)
        event.listen(sessions, "after_commit", self._committed)
        event.listen(sessions, "after_rollback", _forget)

    def close(self) -> None:
        """End the thread, once it has said what it knows."""
        with self._something:
            self._closed = True
            self._something.notify()
        if self._thread is not None:
            self._thread.join(2 * _ANSWER_S)

    def _committed(self, session: Session) -> None:
        if session.in_nested_transaction():
            return  # a savepoint: nobody sees it yet
        jobs: set[str] = session.info.pop(_JOBS, set())
        webhooks: bool = session.info.pop(_WEBHOOKS, False)
        if not jobs and not webhooks:
            return
        if jobs and self._on_jobs is not None:
            self._on_jobs(jobs)
        with self._something:
            self._jobs |= jobs
            self._webhooks = self._webhooks or webhooks
            alive = self._thread is not None and self._thread.is_alive()
            if not alive and not self._closed:
                self._thread = threading.Thread(target=self._run, name="announcer", daemon=True)
                self._thread.start()
            self._something.notify()

    def _run(self) -> None:
        redis = Redis.from_url(
            self._broker_url,
            socket_connect_timeout=_ANSWER_S,
            socket_timeout=_ANSWER_S,
            # Once more at once: the connection may have been closed while nothing was said.
            retry=Retry(NoBackoff(), 1),
        )
        waker = _waker(self._broker_url)
        while True:
            with self._something:
                self._something.wait_for(lambda: self._jobs or self._webhooks or self._closed)
                jobs, webhooks, closed = self._jobs, self._webhooks, self._closed
                self._jobs, self._webhooks = set(), False
            try:
                if jobs:
                    redis.publish(CHANNEL, json.dumps(sorted(jobs)))
                if webhooks:
                    wake_delivery(waker)
                if jobs or webhooks:
                    self._away.back()
            except (RedisError, OperationalError, OSError) as error:
                self._away.note(error)
            if closed:
                redis.close()
                waker.close()
                return


def want_delivery(session: Session) -> None:
    """Have deliveries that became due in this session looked at once it has committed."""
    session.info[_WEBHOOKS] = True


def _collect(session: Session, _context: Any) -> None:
    for row in session.new:
        if isinstance(row, Event):
            session.info.setdefault(_JOBS, set()).add(row.job_id)
        elif isinstance(row, Outbox) and row.kind == "webhook":
            session.info[_WEBHOOKS] = True


def _forget(session: Session) -> None:
    session.info.pop(_JOBS, None)
    session.info.pop(_WEBHOOKS, None)


def _waker(broker_url: str) -> Celery:
    """A Celery application that only sends; the tasks themselves are the workers'."""
    app = Celery("rft-wake", broker=broker_url, set_as_current=False)
    app.conf.broker_transport_options = {
        "socket_connect_timeout": _ANSWER_S,
        "socket_timeout": _ANSWER_S,
        "max_retries": 0,
    }
    return app


def wake_delivery(app: Celery) -> None:
    """Ask a light worker to deliver webhooks now; raises when the broker does not answer."""
    app.send_task(DELIVER, queue=LIGHT, expires=_WAKE_EXPIRES_S, ignore_result=True, retry=False)


class Listener:
    """Hear which jobs have new events, from one connection, for as long as `run` runs.

    `on_jobs` gets their ids in the event loop. `on_gap` is called whenever something may have been
    missed: at the start, and each time Redis has come back.
    """

    def __init__(self, broker_url: str, *, on_jobs: _Ids, on_gap: Callable[[], None]) -> None:
        self._broker_url, self._on_jobs, self._on_gap = broker_url, on_jobs, on_gap
        self._away = Away("listening")

    async def run(self) -> None:
        """Listen until cancelled; tries again for as long as Redis is away."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                self._away.note(error)
            await asyncio.sleep(_RETRY_S)

    async def _listen(self) -> None:
        redis = AsyncRedis.from_url(self._broker_url, socket_connect_timeout=_ANSWER_S)
        try:
            async with redis.pubsub() as pubsub:
                await pubsub.subscribe(CHANNEL)
                async for message in pubsub.listen():
                    if message["type"] == "subscribe":
                        self._away.back()
                        self._on_gap()
                    elif message["type"] == "message":
                        self._on_jobs(_ids(message["data"]))
        finally:
            await redis.aclose()


def _ids(data: bytes) -> list[str]:
    try:
        found = json.loads(data)
    except ValueError:
        return []  # somebody else's message on our channel
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


class Away:
    """Whether Redis is away, said in the log once each time it goes and comes."""

    def __init__(self, doing: str) -> None:
        self._doing, self._away = doing, False

    def note(self, error: Exception) -> None:
        """Log the first trouble."""
        if not self._away:
            logger.warning(
                "Redis does not answer (%s while %s). Until it does, new events and webhooks are"
                " found by looking into the database every other second.",
                type(error).__name__,
                self._doing,
            )
        self._away = True

    def back(self) -> None:
        """Log the end of the trouble, if there was one."""
        if self._away:
            logger.info("Redis answers again (%s).", self._doing)
        self._away = False
