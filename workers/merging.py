"""Fold adapters into their base models for users who download whole weights."""

import logging
import shutil
from pathlib import Path

from core import manifest
from core.artifacts import claim_merge, end_merge, merged_prefix
from core.errors import ConfigurationError, ManifestMismatch, ManifestMissing, StorageError
from core.events import add_event, lock_job
from core.models import Checkpoint, Job
from workers.context import Context
from workers.serving.engine import EngineFailed
from workers.serving.merging import merge

logger = logging.getLogger(__name__)


def merge_waiting(context: Context) -> list[str]:
    """Make every merge that was asked for; returns the ids of their checkpoints.

    A store that does not answer gives the merge back, for the next call; every other trouble ends
    it with a sentence that the API shows.
    """
    done = []
    while (checkpoint := _claim(context)) is not None:
        try:
            _merge(context, checkpoint)
        except (ConfigurationError, EngineFailed, ManifestMissing, ManifestMismatch) as error:
            _end(context, checkpoint, "failed", error=str(error))
        except (StorageError, OSError) as error:
            logger.warning("Merging %s waits: %s", checkpoint.id, error)
            _end(context, checkpoint, "queued")
            return done
        else:
            _end(context, checkpoint, "ready")
        done.append(checkpoint.id)
    return done


def _claim(context: Context) -> Checkpoint | None:
    with context.sessions.begin() as session:
        return claim_merge(session)


def _merge(context: Context, checkpoint: Checkpoint) -> None:
    with context.sessions() as session:
        base = context.registry.require(session.get_one(Job, checkpoint.job_id).model)
    folder = context.settings.data_dir / "merging" / checkpoint.id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        manifest.fetch(context.store, checkpoint.object_prefix, folder / "adapter")
        merge(Path(base.path), folder / "adapter", folder / "merged", log=folder / "merge.log")
        prefix = merged_prefix(checkpoint.object_prefix)
        manifest.commit(context.store, prefix, folder / "merged")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end(
    context: Context, checkpoint: Checkpoint, status: str, *, error: str | None = None
) -> None:
    with context.sessions.begin() as session:
        lock_job(session, checkpoint.job_id)
        kept = end_merge(session, checkpoint, status, error=error)
        if kept and status == "ready":
            message = f"The merged weights of step {checkpoint.step} are ready for download"
            add_event(session, checkpoint.job_id, message)
        elif kept and status == "failed":
            message = f"Merging the weights of step {checkpoint.step} failed: {error}"
            add_event(session, checkpoint.job_id, message, level="warn")
    if not kept:
        # Its checkpoint was deleted meanwhile: nothing would ever delete these.
        context.store.delete_prefix(merged_prefix(checkpoint.object_prefix))
