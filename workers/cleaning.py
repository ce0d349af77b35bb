"""Let go of what nobody needs any more: expired files, uploads that ended, and old messages."""

import logging

from sqlalchemy import select, update

from core import eval_runs, idempotency
from core.clock import now
from core.deliveries import trim_deliveries
from core.errors import StorageError
from core.models import File
from core.queue import trim_outbox
from workers.context import Context
from workers.inspecting import inspect_overdue
from workers.upload_leftovers import give_up_unfinished, sweep_uploads

logger = logging.getLogger(__name__)

#: Files deleted in one round.
MAX_FILES = 100
#: Output items deleted in one transaction, and transactions in one round.
MAX_ITEMS, ITEM_BATCHES = 2_000, 50


def clean_once(context: Context, *, limit: int = MAX_FILES) -> None:
    """Delete what is out of date and see to what was left lying; the rest waits for the next call.

    One call deletes up to ``limit`` files. A store that does not answer is logged: what has expired
    cannot be used any more, its bytes only take up space.
    """
    with context.sessions.begin() as session:
        trim_outbox(session)
        idempotency.trim(session)
        trim_deliveries(session)
    _delete_expired(context, limit)
    _forget_eval_items(context)
    sweep_uploads(context)
    give_up_unfinished(context)
    inspect_overdue(context)


def _delete_expired(context: Context, limit: int) -> None:
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


def _forget_eval_items(context: Context) -> None:
    for _ in range(ITEM_BATCHES):
        with context.sessions.begin() as session:
            if eval_runs.forget_items(session, limit=MAX_ITEMS) < MAX_ITEMS:
                return
