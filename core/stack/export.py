"""Fetch a trained model out of the object store into an ordinary folder."""

import subprocess
import sys
from pathlib import Path

from sqlalchemy import select

from core import manifest
from core.db import make_engine, session_factory
from core.errors import ConfigurationError, NotFound
from core.models import Checkpoint, Job
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore


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
    """
    with session_factory(make_engine(settings.database_url))() as session:
        found = session.scalar(
            select(Checkpoint).where(Checkpoint.name == name, Checkpoint.deleted_at.is_(None))
        )
        if found is None:
            raise NotFound(f"There is no model {name}; GET /v1/models lists them.")
        base_id = session.get_one(Job, found.job_id).model
    folder = out / name.replace(":", "_")
    if folder.exists():
        raise ConfigurationError(f"{folder} is there already; move it away or name another folder.")
    out.mkdir(parents=True, exist_ok=True)
    manifest.fetch(ObjectStore.from_settings(settings), found.object_prefix, folder)
    if merged and found.kind == "adapter":
        return _merge(settings, base_id, folder)
    return folder


def _merge(settings: Settings, base_id: str, adapter: Path) -> Path:
    base = Registry.load(settings.models_file).get(base_id)
    if base is None:
        raise ConfigurationError(
            f"The base model {base_id} is not listed in {settings.models_file}; add it."
        )
    merged = adapter.with_name(adapter.name + "_merged")
    # A process of its own: this package never imports torch.
    command = [sys.executable, "-m", "trainer.export", str(base.path), str(adapter), str(merged)]
    subprocess.run(command, check=True)
    return merged
