"""Committing folders to the object store: files first, then the manifest that makes them count.

A reader trusts only what a manifest names, byte for byte. An upload that stopped half-way has no
manifest, so nobody mistakes it for a checkpoint.
"""

import hashlib
import shutil
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, Field, ValidationError, field_validator

from core.errors import ManifestMismatch, ManifestMissing, ObjectMissing
from core.store import ObjectStore

NAME = "manifest.json"


class Entry(BaseModel):
    """One committed file; `path` is relative to the prefix, with forward slashes."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            raise ValueError("leaves the folder")
        return path


class Manifest(BaseModel):
    """The complete content of one committed prefix."""

    files: list[Entry]


def commit(store: ObjectStore, prefix: str, directory: Path) -> Manifest:
    """Upload every file of `directory` under `prefix`, then the manifest.

    What was committed under the prefix before stops counting first: at no moment does a manifest
    name bytes that are being replaced.
    """
    store.delete(_key(prefix, NAME))
    files = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        sha256 = store.put_file(_key(prefix, name), path)
        files.append(Entry(path=name, bytes=path.stat().st_size, sha256=sha256))
    manifest = Manifest(files=files)
    store.put_bytes(_key(prefix, NAME), manifest.model_dump_json().encode())
    return manifest


def read(store: ObjectStore, prefix: str) -> Manifest:
    """Return the manifest of a prefix.

    Raises ManifestMissing when nothing was committed, ManifestMismatch when it cannot be read.
    """
    try:
        return Manifest.model_validate_json(store.get_bytes(_key(prefix, NAME)))
    except ObjectMissing as error:
        raise ManifestMissing(prefix) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or NAME
        raise ManifestMismatch(prefix, f"{where}: {first['msg']}") from error


def fetch(store: ObjectStore, prefix: str, directory: Path) -> Manifest:
    """Download a committed prefix into `directory`, which must be new or empty.

    Every file is checked against the manifest before the folder appears under its name.
    Raises ManifestMissing or ManifestMismatch.
    """
    manifest = read(store, prefix)
    partial = directory.with_name(directory.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for entry in manifest.files:
        _fetch_entry(store, prefix, entry, partial / entry.path)
    partial.replace(directory)
    return manifest


def _fetch_entry(store: ObjectStore, prefix: str, entry: Entry, path: Path) -> None:
    try:
        store.get_file(_key(prefix, entry.path), path)
    except ObjectMissing as error:
        raise ManifestMismatch(prefix, f"{entry.path} is missing") from error
    size = path.stat().st_size
    if size != entry.bytes:
        raise ManifestMismatch(prefix, f"{entry.path} has {size} bytes, not {entry.bytes}")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
            raise ManifestMismatch(prefix, f"{entry.path} has other content")


def _key(prefix: str, name: str) -> str:
    return f"{prefix.rstrip('/')}/{name}"
