"""On a CPU an adapter is served as full weights: folded in once, in a process of its own."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core import manifest
from core.registry import Registry
from tests.fakes.memory_store import MemoryStore
from workers.serving import merging
from workers.serving.engine import OWN, EngineFailed, EngineSpec
from workers.serving.router import ModelRouter
from workers.serving.target import Target
from workers.serving.weights import WeightCache, Weights

#: Instead of `python -m trainer.export BASE ADAPTER OUT`: joins one file of each.
JOIN = """
import os, pathlib, sys
base, adapter, out = map(pathlib.Path, sys.argv[1:])
out.mkdir()
text = (base / 'weights').read_text() + (adapter / 'weights').read_text()
(out / 'weights').write_text(text)
(out / 'secrets').write_text(' '.join(name for name in os.environ if name.startswith('RFT_')))
"""
ADAPTER = Target(base="tiny", artifact="models/a", kind="adapter")


class FakePool:
    """Lends an engine that accepts adapters, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[EngineSpec] = []
        self.loaded: list[Path] = []

    @asynccontextmanager
    async def use(self, spec: EngineSpec) -> AsyncIterator[Any]:
        async def load_adapter(_name: str, path: Path) -> None:
            self.loaded.append(path)

        self.asked.append(spec)
        yield SimpleNamespace(client=None, load_adapter=load_adapter)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A list with one base model."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "weights").write_text("base+")
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nid = "tiny"\npath = "tiny"\ncontext_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    return Registry.load(models)


@pytest.fixture
def cache(tmp_path: Path) -> WeightCache:
    """A cache over a store with one adapter."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "weights").write_text("adapter")
    (folder / "adapter_config.json").write_text('{"r": 8}')
    store = MemoryStore()
    manifest.commit(store, "models/a", folder)
    return WeightCache(tmp_path / "cache" / "weights", store)


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


def router(registry: Registry, cache: WeightCache, pool: FakePool, *, merge: bool) -> ModelRouter:
    return ModelRouter(registry, cache, pool, merge_adapters=merge)  # type: ignore[arg-type]


def lent_name(router: ModelRouter, target: Target) -> str:
    """Route the target and return the name under which the server knows the weights."""

    async def route() -> str:
        async with router.route(target) as served:
            return served.name

    return asyncio.run(route())


def test_a_merged_adapter_has_a_server_of_its_own(
    registry: Registry, cache: WeightCache, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", JOIN))
    monkeypatch.setenv("RFT_SERVING_TOKEN", "secret")
    on_cpu = router(registry, cache, pool, merge=True)
    assert lent_name(on_cpu, ADAPTER) == OWN
    [spec] = pool.asked
    assert (spec.context_tokens, spec.max_lora_rank, pool.loaded) == (8, 0, [])
    assert (spec.model / "weights").read_text() == "base+adapter"
    assert (spec.model / "secrets").read_text() == ""
    assert spec.model != cache.fetch("models/a").path


def test_an_adapter_is_merged_once(
    registry: Registry, cache: WeightCache, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", JOIN))
    on_cpu = router(registry, cache, pool, merge=True)
    lent_name(on_cpu, ADAPTER)
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", "raise SystemExit(1)"))
    lent_name(on_cpu, ADAPTER)
    assert pool.asked[0] == pool.asked[1]


def test_a_merge_that_fails_is_named_and_tried_again(
    registry: Registry, cache: WeightCache, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu = router(registry, cache, pool, merge=True)
    half = "import os, sys; os.mkdir(sys.argv[3]); raise SystemExit(3)"
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", half))
    with pytest.raises(EngineFailed, match=r"ended with exit code 3; .*merge.*\.log says why"):
        lent_name(on_cpu, ADAPTER)
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", JOIN))
    assert lent_name(on_cpu, ADAPTER) == OWN


def test_without_adapters_the_base_model_needs_no_room_for_them(
    registry: Registry, cache: WeightCache, pool: FakePool
) -> None:
    lent_name(router(registry, cache, pool, merge=True), Target(base="tiny"))
    lent_name(router(registry, cache, pool, merge=False), Target(base="tiny"))
    assert [spec.max_lora_rank for spec in pool.asked] == [0, 64]


def test_elsewhere_an_adapter_joins_the_server_of_its_base_model(
    registry: Registry, cache: WeightCache, pool: FakePool, tmp_path: Path
) -> None:
    name = lent_name(router(registry, cache, pool, merge=False), ADAPTER)
    adapter = cache.fetch("models/a")
    assert (name, pool.loaded) == (adapter.digest, [adapter.path])
    assert [(spec.model, spec.max_lora_rank) for spec in pool.asked] == [(tmp_path / "tiny", 64)]


def test_requests_for_weights_that_are_on_their_way_share_one_thread(
    registry: Registry, cache: WeightCache, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes, calls, go_on = router(registry, cache, pool, merge=False), [], threading.Event()
    fetch = cache.fetch

    def slow(prefix: str) -> Weights:
        calls.append(prefix)
        assert go_on.wait(20)
        return fetch(prefix)

    monkeypatch.setattr(cache, "fetch", slow)

    async def once() -> str:
        async with routes.route(ADAPTER) as served:
            return served.name

    async def main() -> None:
        asked = [asyncio.create_task(once()) for _ in range(100)]
        await asyncio.sleep(0)
        asked.pop().cancel()  # one client that leaves does not end it for the others
        await asyncio.wait_for(asyncio.to_thread(go_on.is_set), 10)
        assert calls == ["models/a"]
        go_on.set()
        assert len(set(await asyncio.gather(*asked))) == 1
        await once()
        assert len(calls) == 2  # a later request looks anew: the weights may have been replaced

    asyncio.run(main())
