"""The pool of model servers, on servers that only pretend."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from workers.serving import pool as module
from workers.serving.engine import EngineFailed, EngineSpec
from workers.serving.pool import EnginePool


class FakeEngine:
    """Starts at once, and remembers what was done to it."""

    made: list["FakeEngine"]
    fails = False

    def __init__(self, spec: EngineSpec, **_options: Any) -> None:
        self.spec, self.is_alive, self.stopped = spec, True, False
        self.adapters = {"adapter"}
        self.made.append(self)

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise EngineFailed("out of memory")

    async def stop(self) -> None:
        self.is_alive, self.stopped = False, True

    async def unload_adapter(self, name: str) -> None:
        self.adapters.remove(name)

    def uses(self, path: Path) -> bool:
        return path == self.spec.model or path.name in self.adapters


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> list[FakeEngine]:
    monkeypatch.setattr(module, "Engine", FakeEngine)
    monkeypatch.setattr(FakeEngine, "made", [], raising=False)
    return FakeEngine.made


def spec(name: str) -> EngineSpec:
    return EngineSpec(model=Path(name), context_tokens=8)


def run(
    use: Callable[[EnginePool], Awaitable[None]], *, limit: int = 2, idle_s: float = 60
) -> None:
    async def main() -> None:
        pool = EnginePool(sockets=Path(), logs=Path(), limit=limit, idle_s=idle_s)
        await use(pool)
        await pool.close()
        assert all(engine.stopped for engine in FakeEngine.made)

    asyncio.run(main())


def test_equal_specs_share_one_server(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async def once() -> object:
            async with pool.use(spec("a")) as engine:
                return engine

        first, second = await asyncio.gather(once(), once())
        assert first is second
        assert len(engines) == 1

    run(use)


def test_the_longest_unused_server_makes_room(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        for name in ("a", "b", "a", "c"):
            async with pool.use(spec(name)):
                pass
        assert [(engine.spec.model.name, engine.stopped) for engine in engines] == [
            ("a", False),
            ("b", True),
            ("c", False),
        ]

    run(use)


def test_a_server_in_use_is_never_stopped(
    engines: list[FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0)

    async def use(pool: EnginePool) -> None:
        async with pool.use(spec("a")):
            with pytest.raises(EngineFailed, match="All 1 model servers are busy"):
                async with pool.use(spec("b")):
                    pass
            await pool.stop_idle()
            assert not engines[0].stopped

    run(use, limit=1, idle_s=0)


def test_a_request_waits_for_a_busy_server(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async def other() -> None:
            async with pool.use(spec("b")):
                pass

        async with pool.use(spec("a")):
            waiting = asyncio.create_task(other())
            await asyncio.sleep(0.05)
            assert not waiting.done()
        await waiting
        assert engines[0].stopped

    run(use, limit=1)


def test_nobody_waits_for_the_end_of_a_server_of_another_model(
    engines: list[FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(pool: EnginePool) -> None:
        may_end = asyncio.Event()
        stop = FakeEngine.stop

        async def slowly(self: FakeEngine) -> None:
            await may_end.wait()
            await stop(self)

        async def other() -> None:
            async with pool.use(spec("c")):
                pass

        monkeypatch.setattr(FakeEngine, "stop", slowly)
        for name in ("a", "b"):
            async with pool.use(spec(name)):
                pass
        waiting = asyncio.create_task(other())
        await asyncio.sleep(0.05)
        async with asyncio.timeout(5), pool.use(spec("b")):
            pass
        # The server that ends keeps its place until it has: two would not fit into the memory.
        await asyncio.sleep(0.3)
        assert [engine.spec.model.name for engine in engines] == ["a", "b"]
        may_end.set()
        await waiting

    run(use)


def test_idle_servers_are_stopped(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async with pool.use(spec("a")):
            pass
        await pool.stop_idle()
        assert engines[0].stopped
        assert pool.models() == []

    run(use, idle_s=0)


def test_a_dead_server_is_replaced(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async with pool.use(spec("a")):
            engines[0].is_alive = False
        async with pool.use(spec("a")) as engine:
            assert engine is engines[1]

    run(use)


def test_a_failed_start_is_told_to_all_and_tried_again(
    engines: list[FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(pool: EnginePool) -> None:
        async def once() -> None:
            async with pool.use(spec("a")):
                pass

        monkeypatch.setattr(FakeEngine, "fails", True)
        told = await asyncio.gather(once(), once(), return_exceptions=True)
        assert [str(error) for error in told] == ["out of memory", "out of memory"]
        monkeypatch.setattr(FakeEngine, "fails", False)
        await once()
        assert len(engines) == 2

    run(use)


def test_a_caller_that_goes_away_does_not_end_the_start(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async def once() -> None:
            async with pool.use(spec("a")):
                pass

        first = asyncio.create_task(once())
        await asyncio.sleep(0)
        first.cancel()
        await once()
        assert len(engines) == 1

    run(use)


def test_folders_of_running_servers_are_in_use() -> None:
    async def use(pool: EnginePool) -> None:
        async with pool.use(spec("a")):
            assert pool.uses(Path("a"))
            assert pool.uses(Path("adapter"))
            assert not pool.uses(Path("b"))

    run(use)


def test_servers_let_go_of_deleted_weights(engines: list[FakeEngine]) -> None:
    async def use(pool: EnginePool) -> None:
        async with pool.use(spec("a")):
            # The answer that is being written ends first.
            assert not await pool.release(Path("a"))
            assert not await pool.release(Path("adapter"))
        assert await pool.release(Path("adapter"))
        assert (engines[0].adapters, engines[0].stopped) == (set(), False)
        assert await pool.release(Path("b"))
        assert await pool.release(Path("a"))
        assert engines[0].stopped

    run(use)
