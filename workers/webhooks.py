"""The courier: takes webhooks from the outbox to their endpoints, from a thread of its own.

A task of the light worker only pokes it, so that endpoints which hang never keep a worker from
validating files.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from core.deliveries import fan_out, record
from core.delivery_claims import Claimed, claim_due
from core.webhooks import Outcome, send
from graders.http import Outbound, Policy
from workers.context import Context

logger = logging.getLogger(__name__)

#: Messages under way at the same time, and seconds between two looks for more while some are.
MAX_UNDER_WAY = 64
LOOK_S = 0.5
#: Seconds after which the courier looks although nobody poked it: no poke comes without a broker.
IDLE_LOOK_S = 2.0


class Courier:
    """Delivers what is due, from its first poke on; one per worker process."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._poked = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def poke(self) -> None:
        """Have it look for something to deliver; returns at once."""
        self._poked.set()
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._main, name="courier", daemon=True)
                self._thread.start()

    def _main(self) -> None:
        while True:
            self._poked.wait(IDLE_LOOK_S)
            self._poked.clear()
            try:
                deliver_due(self._context(), look_again=self._poked)
            except SQLAlchemyError as error:
                # Nothing is lost: the next look finds it.
                logger.warning("Webhooks wait for the database: %s", type(error).__name__)


def deliver_due(context: Context, *, look_again: threading.Event | None = None) -> int:
    """Send what is due until nothing is, and return how many attempts were made.

    No transaction is open while a message is under way. `look_again` asks for another look before
    the end.
    """
    return asyncio.run(_Round(context, look_again or threading.Event()).run())


class _Round:
    """One round: claim, send side by side, record."""

    def __init__(self, context: Context, look_again: threading.Event) -> None:
        self._sessions = context.sessions
        self._outbound = Outbound(Policy(context.judges.config.http.allow_hosts))
        self._look_again = look_again
        self._under_way: dict[asyncio.Task[Outcome], Claimed] = {}

    async def run(self) -> int:
        attempts = 0
        try:
            while True:
                self._look_again.clear()
                claimed = await asyncio.to_thread(self._claim)
                attempts += len(claimed)
                for each in claimed:
                    self._under_way[asyncio.create_task(self._send(each))] = each
                if self._under_way:
                    await self._some_end()
                elif not self._look_again.is_set():
                    return attempts
        finally:
            for task in self._under_way:
                task.cancel()
            await self._outbound.close()

    async def _some_end(self) -> None:
        done, _ = await asyncio.wait(
            self._under_way, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            claimed = self._under_way.pop(task)
            await asyncio.to_thread(self._record, claimed, _outcome(task, claimed))

    def _claim(self) -> list[Claimed]:
        room = MAX_UNDER_WAY - len(self._under_way)
        if room == 0:
            return []
        while self._fan_out():
            pass
        with self._sessions.begin() as session:
            return claim_due(session, limit=room)

    def _fan_out(self) -> int:
        with self._sessions.begin() as session:
            return fan_out(session)

    async def _send(self, claimed: Claimed) -> Outcome:
        return await send(
            self._outbound,
            claimed.url,
            claimed.event,
            message_id=claimed.message_id,
            stored_secrets=claimed.secrets,
        )

    def _record(self, claimed: Claimed, outcome: Outcome) -> None:
        if outcome.error is not None:
            logger.info("Webhook delivery %s, try %d: %s", claimed.id, claimed.attempt, outcome)
        try:
            with self._sessions.begin() as session:
                turned_off = record(session, claimed, outcome)
        except SQLAlchemyError as error:
            # It counts as lost with its lease, and is sent again; the others are left alone.
            logger.warning(
                "The outcome of webhook delivery %s is lost: %s", claimed.id, type(error).__name__
            )
            return
        if turned_off is not None:
            logger.warning("Webhook endpoint %s is turned off: %s", claimed.endpoint_id, turned_off)


def _outcome(task: asyncio.Task[Outcome], claimed: Claimed) -> Outcome:
    """What came of an attempt; a defect of ours fails this one, and no other that is under way."""
    error = task.exception()
    if error is None:
        return task.result()
    logger.error("Webhook delivery %s could not be sent", claimed.id, exc_info=error)
    return Outcome(None, "The service had an error while sending the message; it is in its log.")
