"""Fetch a trained model out of the object store into an ordinary folder."""

import re
import subprocess
import sys
from pathlib import Path

from sqlalchemy import select

from core import manifest
from core.db import make_engine, session_factory
from core.errors import ConfigurationError, NotFound, RftError
from core.models import Checkpoint, Job
from core.registry import BaseModel, Registry
from core.settings import Settings
from core.store import ObjectStore


class MergeFailed(RftError):
    """An adapter could not be folded into its base model."""

    code = "merge_failed"


def export_model(settings: Settings, name: str, out: Path, *, merged: bool = False) -> Path:
    """Write a trained model or checkpoint below `out`, verified against its manifest.

    Args:
        name: as the API lists it, `ft:…`.
        merged: fold an adapter into its base model, so that peft is not needed to load it.

    Returns:
        The model's folder, in Hugging Face layout.

    Raises:
        NotFound: no such model.
        ConfigurationError: the folder is there already, or the base model is no longer listed.
        StorageError: the object store does not deliver it.
        MergeFailed: the adapter was written, but could not be folded in.
    """
    found, base_id = _find(settings, name)
    folder = out / re.sub("[:/]", "_", name)
    if folder.exists():
        raise ConfigurationError(f"{folder} is there already; move it away or name another folder.")
    base = _base(settings, base_id) if merged and found.kind == "adapter" else None
    out.mkdir(parents=True, exist_ok=True)
    manifest.fetch(ObjectStore.from_settings(settings), found.object_prefix, folder)
    return folder if base is None else _merge(base, folder)


def _find(settings: Settings, name: str) -> tuple[Checkpoint, str]:
    """Return the stored model of this name and the id of its base model."""
    engine = make_engine(settings.database_url)
    try:
        with session_factory(engine)() as session:
            found = session.scalar(
                select(Checkpoint).where(Checkpoint.name == name, Checkpoint.deleted_at.is_(None))
            )
            if found is None:
                raise NotFound(f"There is no model {name}; GET /v1/models lists them.")
            return found, session.get_one(Job, found.job_id).model
    finally:
        engine.dispose()


def _base(settings: Settings, base_id: str) -> BaseModel:
    base = Registry.load(settings.models_file).get(base_id)
    if base is None:
        raise ConfigurationError(
            f"The base model {base_id} is not listed in {settings.models_file}; add it."
        )
    return base


def _merge(base: BaseModel, adapter: Path) -> Path:
    merged = adapter.with_name(adapter.name + "_merged")
    # A process of its own: this package never imports torch.
    command = [sys.executable, "-m", "trainer.export", str(base.path), str(adapter), str(merged)]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        reason = next(iter(result.stderr.splitlines()[-1:]), f"exit code {result.returncode}")
        raise MergeFailed(
            f"The adapter is complete in {adapter}, but folding it into {base.id} failed"
            f" ({reason}); mend that, move the folder away and run the command again."
        )
    return merged
