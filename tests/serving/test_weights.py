"""Trained weights on the local disk: named by content, fetched once, dropped when unused."""

import os
from pathlib import Path

import pytest

from core import manifest
from core.errors import ManifestMissing
from tests.fakes.memory_store import MemoryStore
from workers.serving.weights import WeightCache


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def commit(store: MemoryStore, prefix: str, folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "weights").write_text(text)
    manifest.commit(store, prefix, folder)


def test_fetches_once(store: MemoryStore, tmp_path: Path) -> None:
    commit(store, "models/a", tmp_path / "a", "one")
    cache = WeightCache(tmp_path / "cache", store)
    first = cache.fetch("models/a")
    assert (first.path / "weights").read_text() == "one"
    del store.objects["models/a/weights"]
    assert cache.fetch("models/a") == first


def test_replaced_weights_get_another_name_and_folder(store: MemoryStore, tmp_path: Path) -> None:
    cache = WeightCache(tmp_path / "cache", store)
    commit(store, "models/a", tmp_path / "a", "one")
    first = cache.fetch("models/a")
    commit(store, "models/a", tmp_path / "a", "two")
    second = cache.fetch("models/a")
    assert second.digest != first.digest
    assert (first.path / "weights").read_text() == "one"
    assert (second.path / "weights").read_text() == "two"


def test_what_was_never_committed_is_not_served(store: MemoryStore, tmp_path: Path) -> None:
    store.put_bytes("models/a/weights", b"half an upload")
    with pytest.raises(ManifestMissing, match="models/a"):
        WeightCache(tmp_path / "cache", store).fetch("models/a")


def test_the_longest_unused_weights_go_first(store: MemoryStore, tmp_path: Path) -> None:
    cache = WeightCache(tmp_path / "cache", store, limit_bytes=8)
    paths = []
    for age, name in enumerate(("new", "mid", "old")):
        commit(store, f"models/{name}", tmp_path / name, name + "!")
        paths.append(cache.fetch(f"models/{name}").path)
        os.utime(paths[-1], (1000 - age, 1000 - age))
    assert cache.surplus() == paths[2:]
    cache.remove(paths[2])
    assert [path.exists() for path in paths] == [True, True, False]


def test_weights_that_somebody_has_just_asked_for_stay(store: MemoryStore, tmp_path: Path) -> None:
    commit(store, "models/a", tmp_path / "a", "large")
    cache = WeightCache(tmp_path / "cache", store, limit_bytes=1)
    path = cache.fetch("models/a").path
    os.utime(path, (1000, 1000))
    assert cache.surplus() == [path]
    cache.fetch("models/a")  # between the look and the removal
    cache.remove(path)
    assert path.exists()
    assert cache.surplus() == []


def test_weights_that_are_being_written_are_left_alone(store: MemoryStore, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    left_over = root / "a.partial"
    left_over.mkdir(parents=True)
    cache = WeightCache(root, store, limit_bytes=0)
    # Nobody writes at the start: what lies there is of a service that was killed.
    assert not left_over.exists()
    left_over.mkdir()
    (left_over / "weights").write_text("half")
    os.utime(left_over, (1000, 1000))
    assert cache.surplus() == []


def test_weights_of_deleted_models_are_orphans(store: MemoryStore, tmp_path: Path) -> None:
    cache = WeightCache(tmp_path / "cache" / "weights", store)
    for name in ("a", "b", "c"):
        commit(store, f"models/{name}", tmp_path / name, name)
    # The last checkpoint of a job and its model are the same weights.
    store.objects.update(
        {key.replace("/a/", "/a2/"): data for key, data in store.objects.items() if "/a/" in key}
    )
    digests = {name: cache.fetch(f"models/{name}").digest for name in ("a", "a2", "b", "c")}
    assert digests["a"] == digests["a2"]
    store.delete_prefix("models/a")
    assert cache.orphans() == []
    store.delete_prefix("models/a2")
    store.delete_prefix("models/c")
    # A service that was started anew knows them still.
    cache = WeightCache(tmp_path / "cache" / "weights", store)
    assert sorted(cache.orphans()) == sorted([digests["a"], digests["c"]])
    folder, merged = cache.folders(digests["a"])
    merged.mkdir()
    cache.drop(digests["a"])
    assert not folder.exists() and not merged.exists()
    assert cache.orphans() == [digests["c"]]
