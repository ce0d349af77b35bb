"""Inspect training files whose API process did not: it ended, or its inspection failed."""

import logging
import threading
import time

from sqlalchemy import select, update

from core.clock import now
from core.errors import ObjectMissing, StorageError
from core.inspection import InspectionFailed, TooSlowToRead, inspect_stored
from core.inspection.settle import OVERDUE_S, give_up, hand_over, settle
from core.models import File
from workers.context import Context

logger = logging.getLogger(__name__)

#: How long one round goes on to take files, in seconds.
ROUND_S = 60.0
#: When a file is tried again whose bytes the store did not give, in seconds.
RETRY_S = 60
#: How old a file is whose inspections all failed when there will be no further one, in seconds.
GIVE_UP_S = 3600

#: One file at a time in this process: its other threads have other work.
_inspecting = threading.Lock()


def inspect_overdue(context: Context) -> None:
    """Inspect the files that wait for a worker, the one that has waited longest first.

    Each file is inspected by one worker at a time, and ends as `processed` or `error`. A store
    that does not answer is logged; a later call tries again.
    """
    if not _inspecting.acquire(blocking=False):
        return
    try:
        until = time.monotonic() + ROUND_S
        while time.monotonic() < until and (file := _take(context)) is not None:
            if not _inspect(context, file):
                return
    finally:
        _inspecting.release()


def _take(context: Context) -> File | None:
    """Return a file that nobody else inspects from now on, unless this takes too long."""
    due = (File.status == "uploaded") & File.deleted_at.is_(None) & (File.inspect_after <= now())
    with context.sessions.begin() as session:
        oldest = select(File.id).where(due).order_by(File.inspect_after, File.seq).limit(1)
        while (file_id := session.scalar(oldest)) is not None:
            file: File | None = session.scalar(
                update(File)
                .where(File.id == file_id, due)
                .values(inspect_after=now() + OVERDUE_S)
                .returning(File)
            )
            if file is not None:
                return file
    return None


def _inspect(context: Context, file: File) -> bool:
    """Give a file its last status if possible; says whether to go on with others."""
    try:
        report = inspect_stored(context.store.iter(file.object_key), file.bytes)
    except ObjectMissing:
        _end(context, file, "Its stored bytes are gone.")
        return True
    except TooSlowToRead as refusal:
        _end(context, file, refusal.message)
        return True
    except StorageError as error:
        logger.warning("%s still waits to be inspected: %s", file.id, error)
        with context.sessions.begin() as session:
            hand_over(session, file.id, after_s=RETRY_S)
        return False
    except InspectionFailed as error:
        logger.warning("%s was not inspected: %s", file.id, error)
        if file.created_at <= now() - GIVE_UP_S:
            _end(context, file, "Its rows could not be read: the process that does it fails.")
        return True
    with context.sessions.begin() as session:
        settle(session, file.id, file.sha256, report)
    return True


def _end(context: Context, file: File, reason: str) -> None:
    logger.warning("%s is given up: %s", file.id, reason)
    with context.sessions.begin() as session:
        give_up(session, file.id, reason)
