"""Let go of what uploads leave behind: parts nobody needs, and objects that were never finished."""

import logging
import time

from sqlalchemy import delete, exists, select, update

from core.clock import now
from core.errors import StorageError
from core.models import Upload, UploadPart
from workers.context import Context

logger = logging.getLogger(__name__)

#: Uploads whose parts are deleted in one round.
MAX_UPLOADS = 100
#: How long after its expiry an upload is left alone, in seconds: a request to complete it that came
#: in time may still be reading its parts.
GRACE_S = 15 * 60
#: How long the store may take to receive one object, in seconds; an older one was given up by a
#: process that was killed.
STALE_S = 24 * 3600
#: Where the API begins objects.
PREFIXES = ("files/", "uploads/")


def sweep_uploads(context: Context, *, limit: int = MAX_UPLOADS) -> None:
    """Close expired uploads, and delete the parts of up to `limit` that were closed.

    A store that does not answer is logged; the next call tries again.
    """
    with context.sessions.begin() as session:
        session.execute(
            update(Upload)
            .where(Upload.status == "pending", Upload.expires_at <= now() - GRACE_S)
            .values(status="expired")
        )
        closed = session.scalars(
            select(Upload.id)
            .where(
                Upload.status.in_(("completed", "cancelled", "expired")),
                exists().where(UploadPart.upload_id == Upload.id),
            )
            .order_by(Upload.expires_at)
            .limit(limit)
        ).all()
    for upload_id in closed:
        try:
            # Bytes first: without their rows nobody would find them again.
            context.store.delete_prefix(f"uploads/{upload_id}")
        except StorageError as error:
            logger.warning("The parts of %s stay for now: %s", upload_id, error)
            return
        with context.sessions.begin() as session:
            session.execute(delete(UploadPart).where(UploadPart.upload_id == upload_id))


def give_up_unfinished(context: Context) -> None:
    """Have the store forget objects that a killed process began and never finished."""
    try:
        for prefix in PREFIXES:
            given_up = context.store.abort_stale(prefix, before=time.time() - STALE_S)
            if given_up:
                logger.warning("Gave up %s unfinished objects under %s", given_up, prefix)
    except StorageError as error:
        logger.warning("Unfinished objects stay for now: %s", error)
