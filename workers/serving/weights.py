"""Trained weights on the local disk, fetched from the object store when first asked for."""

import hashlib
import logging
import os
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from core import manifest
from core.store import ObjectStore
from workers.serving.merging import merge

logger = logging.getLogger(__name__)

#: Disk space that fetched weights may take before the longest unused ones are dropped, in bytes.
LIMIT_BYTES = 50 * 2**30
#: Seconds after the last request for them in which weights stay, beyond the limit too: a server
#: that will read them may still be waiting for its turn.
KEPT_S = 600.0


@dataclass(frozen=True)
class Weights:
    """Fetched weights; `digest` names their content, so equal digests are equal weights."""

    digest: str
    path: Path


#: Beside a folder: the object prefixes under which its content was found, one a line.
_SOURCES = ".sources"
#: A folder that is being written, here and in `manifest.fetch`.
_PARTIAL = ".partial"


class WeightCache:
    """Folders under `root`, one for each content; logs of merges lie in `logs` beside it.

    The content, not the object prefix, names a folder: weights that were replaced in the store get
    a new folder and thus a new name inside vLLM, which must never see one name with two contents.
    """

    def __init__(self, root: Path, store: ObjectStore, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._root, self._store, self._limit_bytes = root, store, limit_bytes
        self._locks: dict[str, threading.Lock] = {}
        root.mkdir(parents=True, exist_ok=True)
        (root.parent / "logs").mkdir(exist_ok=True)
        for left_over in root.glob(f"*{_PARTIAL}"):
            shutil.rmtree(left_over)

    def fetch(self, prefix: str) -> Weights:
        """Return the weights committed under `prefix`; safe to call from several threads.

        Raises:
            StorageError: nothing is committed there, or the store does not deliver it.
        """
        listing = manifest.read(self._store, prefix)
        digest = hashlib.sha256(listing.model_dump_json().encode()).hexdigest()[:32]
        weights = Weights(digest, self._root / digest)
        with self._lock(weights.path):
            if not weights.path.exists():
                manifest.fetch(self._store, prefix, weights.path)
                logger.info("fetched %s to %s", prefix, weights.path)
            self._note_source(digest, prefix)
            os.utime(weights.path)  # last use, for `trim`
        return weights

    def orphans(self) -> list[str]:
        """Return the digests of weights that are no longer in the store: their models are deleted.

        Raises:
            StorageError: the store does not say.
        """
        return [
            path.name.removesuffix(_SOURCES)
            for path in self._root.glob(f"*{_SOURCES}")
            if not any(self._is_committed(prefix) for prefix in path.read_text().splitlines())
        ]

    def folders(self, digest: str) -> list[Path]:
        """Return the folders that hold the weights, as they are and merged."""
        return [self._root / digest, self._root / _merged_name(digest)]

    def drop(self, digest: str) -> None:
        """Delete the weights, as they are and merged; waits for a merge that is under way."""
        for folder in self.folders(digest):
            with self._lock(folder):
                shutil.rmtree(folder, ignore_errors=True)
        (self._root / f"{digest}{_SOURCES}").unlink(missing_ok=True)
        logger.info("dropped %s, whose model is deleted", digest)

    def _note_source(self, digest: str, prefix: str) -> None:
        path = self._root / f"{digest}{_SOURCES}"
        known = path.read_text().splitlines() if path.exists() else []
        if prefix not in known:
            path.write_text("\n".join([*known, prefix]) + "\n")

    def _is_committed(self, prefix: str) -> bool:
        return self._store.exists(f"{prefix.rstrip('/')}/{manifest.NAME}")

    def merged(self, adapter: Weights, base: Path) -> Weights:
        """Return the base model with the adapter folded in, merging when first asked for.

        Raises:
            EngineFailed: the merge fails.
        """
        name = _merged_name(adapter.digest)
        weights = Weights(name, self._root / name)
        with self._lock(weights.path):
            if not weights.path.exists():
                partial = self._root / f"{name}{_PARTIAL}"
                shutil.rmtree(partial, ignore_errors=True)
                log = self._root.parent / "logs" / f"merge-{adapter.digest}.log"
                merge(base, adapter.path, partial, log=log)
                partial.replace(weights.path)
                logger.info("merged %s into %s", adapter.digest, base.name)
            os.utime(weights.path)
        return weights

    def surplus(self) -> list[Path]:
        """Return the longest unused folders, without which the rest fits the limit."""
        whole = (path for path in self._root.iterdir() if path.is_dir())
        folders = sorted(
            (path for path in whole if path.suffix != _PARTIAL),
            key=lambda path: path.stat().st_mtime,
            reverse=True,
        )
        total, surplus = 0, []
        for folder in folders:
            total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            if total > self._limit_bytes and not _was_just_used(folder):
                surplus.append(folder)
        return surplus

    def remove(self, folder: Path) -> None:
        """Delete a folder that no server uses, unless somebody has asked for it meanwhile."""
        with self._lock(folder):
            if not _was_just_used(folder):
                shutil.rmtree(folder, ignore_errors=True)
                logger.info("dropped %s", folder)

    def _lock(self, folder: Path) -> threading.Lock:
        return self._locks.setdefault(folder.name, threading.Lock())


def _merged_name(digest: str) -> str:
    return f"{digest}-merged"


def _was_just_used(folder: Path) -> bool:
    return folder.exists() and time.time() - folder.stat().st_mtime < KEPT_S
