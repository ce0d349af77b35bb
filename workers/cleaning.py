"""Let go of what nobody needs any more: the bytes of expired files, and old messages."""

import logging

from sqlalchemy import select, update

from core.clock import now
from core.errors import StorageError
from core.models import File
from core.queue import trim_outbox
from workers.context import Context

logger = logging.getLogger(__name__)

#: Files deleted in one round.
MAX_FILES = 100


def clean_once(context: Context, *, limit: int = MAX_FILES) -> None:
    """Delete up to ``limit`` expired files, and old messages; what is left waits for the next call.

    A store that does not answer is logged: an expired file cannot be used any more, its bytes only
    take up space.
    """
    with context.sessions.begin() as session:
        trim_outbox(session)
    with context.sessions() as session:
        expired = session.execute(
            select(File.id, File.object_key)
            .where(File.deleted_at.is_(None), File.expires_at <= now())
            .order_by(File.expires_at)
            .limit(limit)
        ).all()
    for file_id, object_key in expired:
        try:
            # Bytes first: without its row nobody would find them again.
            context.store.delete(object_key)
        except StorageError as error:
            logger.warning("The expired file %s stays for now: %s", file_id, error)
            return
        with context.sessions.begin() as session:
            session.execute(update(File).where(File.id == file_id).values(deleted_at=now()))
