"""Inspect training files whose API process ended before their inspection did."""

import logging

from rft.dataset import Validator
from sqlalchemy import select

from core.clock import now
from core.errors import StorageError
from core.inspection.settle import settle
from core.models import File
from workers.context import Context

logger = logging.getLogger(__name__)

#: How long the API may take after an upload, in seconds, before a worker inspects the file.
OVERDUE_S = 15 * 60


def inspect_overdue(context: Context) -> str | None:
    """Inspect the oldest file that waits for it too long; returns its id.

    A store that does not answer is logged; the next call tries again.
    """
    with context.sessions() as session:
        file = session.scalar(
            select(File)
            .where(
                File.status == "uploaded",
                File.deleted_at.is_(None),
                File.created_at <= now() - OVERDUE_S,
            )
            .order_by(File.created_at, File.seq)
            .limit(1)
        )
    if file is None:
        return None
    validator = Validator("auto")
    try:
        for chunk in context.store.iter(file.object_key):
            validator.feed(chunk)
    except StorageError as error:
        logger.warning("%s still waits to be inspected: %s", file.id, error)
        return None
    with context.sessions.begin() as session:
        settle(session, file.id, file.sha256, validator.close())
    return file.id
