"""Manifests: only what one names is trusted, and only when every byte is right."""

import json
from pathlib import Path

import pytest

from core import manifest
from core.errors import ManifestMismatch, ManifestMissing
from core.store import ObjectStore

PREFIX = "jobs/ftjob-x/checkpoints/5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "weights").write_bytes(b"weights")
    (folder / "cursor.json").write_bytes(b"{}")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_commit_comes_back(s3: ObjectStore, folder: Path, tmp_path: Path) -> None:
    committed = manifest.commit(s3, PREFIX, folder)
    target = tmp_path / "new" / "target"
    assert manifest.fetch(s3, PREFIX, target) == committed
    assert contents(target) == contents(folder)
    assert [entry.path for entry in committed.files] == ["cursor.json", "model/weights"]


def test_files_that_no_manifest_names_stay_away(
    s3: ObjectStore, folder: Path, tmp_path: Path
) -> None:
    manifest.commit(s3, PREFIX, folder)
    s3.put_bytes(f"{PREFIX}/stray", b"?")
    manifest.fetch(s3, PREFIX, tmp_path / "target")
    assert contents(tmp_path / "target") == contents(folder)


def test_without_a_manifest_nothing_is_trusted(
    s3: ObjectStore, folder: Path, tmp_path: Path
) -> None:
    s3.put_file(f"{PREFIX}/model/weights", folder / "model" / "weights")
    with pytest.raises(ManifestMissing, match=PREFIX):
        manifest.fetch(s3, PREFIX, tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda store: store.delete(f"{PREFIX}/model/weights"), "model/weights is missing"),
        (lambda store: store.put_bytes(f"{PREFIX}/model/weights", b"WEIGHTS"), "other content"),
        (lambda store: store.put_bytes(f"{PREFIX}/model/weights", b"w"), "1 bytes, not 7"),
        (lambda store: store.put_bytes(f"{PREFIX}/manifest.json", b'{"files": ['), "JSON"),
        (lambda store: store.put_bytes(f"{PREFIX}/manifest.json", b"{}"), "files"),
    ],
)
def test_a_difference_is_never_trusted(
    s3: ObjectStore, folder: Path, tmp_path: Path, change: object, said: str
) -> None:
    manifest.commit(s3, PREFIX, folder)
    assert callable(change)
    change(s3)
    with pytest.raises(ManifestMismatch, match=said):
        manifest.fetch(s3, PREFIX, tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "a/../../outside", ""])
def test_a_manifest_cannot_write_outside(s3: ObjectStore, tmp_path: Path, path: str) -> None:
    entry = {"path": path, "bytes": 0, "sha256": "0" * 64}
    s3.put_bytes(f"{PREFIX}/manifest.json", json.dumps({"files": [entry]}).encode())
    with pytest.raises(ManifestMismatch, match="leaves the folder"):
        manifest.fetch(s3, PREFIX, tmp_path / "target")


class Crash(Exception):
    """Stands for the death of the process that uploads."""


def test_an_interrupted_commit_is_never_trusted(
    s3: ObjectStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.commit(s3, PREFIX, folder)
    (folder / "cursor.json").write_bytes(b'{"step": 6}')
    upload = s3.put_file

    def upload_then_die(key: str, path: Path) -> str:
        upload(key, path)
        raise Crash

    monkeypatch.setattr(s3, "put_file", upload_then_die)
    with pytest.raises(Crash):
        manifest.commit(s3, PREFIX, folder)
    with pytest.raises(ManifestMissing):
        manifest.fetch(s3, PREFIX, tmp_path / "target")


def test_an_interrupted_fetch_can_be_repeated(
    s3: ObjectStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.commit(s3, PREFIX, folder)
    download = s3.get_file

    def download_then_die(key: str, path: Path) -> None:
        download(key, path)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(s3, "get_file", download_then_die)
        with pytest.raises(Crash):
            manifest.fetch(s3, PREFIX, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    manifest.fetch(s3, PREFIX, tmp_path / "target")
    assert contents(tmp_path / "target") == contents(folder)
