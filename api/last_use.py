"""Writes down when keys were last used: once in a while, not with each request."""

import asyncio
import logging

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from api.parts import Parts
from core.keys import note_used

logger = logging.getLogger(__name__)

#: Seconds between two writes.
INTERVAL_S = 60.0


async def note_last_use(parts: Parts) -> None:
    """Write down every `INTERVAL_S` which keys were used, until cancelled."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        await run_in_threadpool(write_last_use, parts)


def write_last_use(parts: Parts) -> None:
    """Write down which keys were used since the last call; a database that is away is logged."""
    used = parts.last_use.take()
    if not used:
        return
    try:
        with parts.sessions.begin() as session:
            note_used(session, used)
    except SQLAlchemyError as error:
        logger.warning("When keys were last used was not written down: %s", error)
