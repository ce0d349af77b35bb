"""The running model servers: started when asked for, stopped when idle or in the way."""

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from workers.serving.engine import Engine, EngineFailed, EngineSpec

logger = logging.getLogger(__name__)

#: Seconds a request waits for a server to become free when all are busy.
WAIT_S = 120.0
_POLL_S = 0.2


class EnginePool:
    """At most `limit` servers at a time; the longest unused idle one makes room for another.

    Args:
        sockets: folder for Unix sockets; its path must be short.
        logs: folder for the servers' logs.
        idle_s: seconds without a request after which a server is stopped.
        options: further options of every vLLM server.
    """

    def __init__(
        self,
        *,
        sockets: Path,
        logs: Path,
        limit: int,
        idle_s: float,
        options: tuple[str, ...] = (),
    ) -> None:
        self._sockets, self._logs, self._options = sockets, logs, options
        self._limit, self._idle_s = limit, idle_s
        self._starts: dict[EngineSpec, asyncio.Task[Engine]] = {}
        self._users: Counter[EngineSpec] = Counter()
        self._last_used: defaultdict[EngineSpec, float] = defaultdict(time.monotonic)
        #: The ends of servers, each of which keeps its place until it is over.
        self._ending: set[asyncio.Task[None]] = set()
        self._count = 0

    @asynccontextmanager
    async def use(self, spec: EngineSpec) -> AsyncIterator[Engine]:
        """Lend the server of `spec`, starting it if needed; a lent server is not stopped.

        Raises:
            EngineFailed: it cannot be started, or all servers stay busy.
        """
        start = await self._reserve(spec)
        try:
            # Shielded: a caller that goes away must not end the start others wait for.
            yield await asyncio.shield(start)
        finally:
            self._users[spec] -= 1
            self._last_used[spec] = time.monotonic()

    async def stop_idle(self) -> None:
        """Stop every server that nobody has used for `idle_s` seconds."""
        now = time.monotonic()
        unused = [spec for spec in self._idle() if now - self._last_used[spec] >= self._idle_s]
        await asyncio.gather(*map(self._stop, unused))

    async def release(self, folder: Path) -> bool:
        """Make every server let go of a folder; return False while one answers with it."""
        for spec, start in list(self._starts.items()):
            engine = start.result() if _succeeded(start) else None
            holds = engine is not None and engine.uses(folder)
            # What was looked at before may have taken long.
            if self._starts.get(spec) is not start or (spec.model != folder and not holds):
                continue
            if self._users[spec] or not start.done():
                return False
            if spec.model == folder:
                await self._stop(spec)
            elif engine is not None:
                await engine.unload_adapter(folder.name)
        return True

    async def close(self) -> None:
        """Stop all servers, also those that are still starting."""
        for spec in list(self._starts):
            self._stop(spec)
        await asyncio.gather(*self._ending)

    def uses(self, folder: Path) -> bool:
        """Whether a server may still read the folder."""
        running = self._running().values()
        return any(spec.model == folder for spec in self._starts) or any(
            engine.uses(folder) for engine in running
        )

    def models(self) -> list[str]:
        """Return the folder names of the models that are loaded or loading."""
        return [spec.model.name for spec in self._starts]

    async def _reserve(self, spec: EngineSpec) -> asyncio.Task[Engine]:
        """Return the start of the server, with one user counted."""
        deadline = time.monotonic() + WAIT_S
        while (start := self._find_or_start(spec)) is None:
            if time.monotonic() > deadline:
                raise EngineFailed(
                    f"All {self._limit} model servers are busy; try again later, or raise"
                    " RFT_SERVING_ENGINES where memory allows."
                )
            await asyncio.sleep(_POLL_S)
        return start

    def _find_or_start(self, spec: EngineSpec) -> asyncio.Task[Engine] | None:
        """As `_reserve`; None when there is no room yet. Nothing else runs meanwhile."""
        self._drop_dead()
        if spec not in self._starts:
            if len(self._starts) + len(self._ending) >= self._limit:
                self._make_room()
                return None
            self._starts[spec] = asyncio.create_task(self._start(spec))
        self._users[spec] += 1
        return self._starts[spec]

    async def _start(self, spec: EngineSpec) -> Engine:
        self._count += 1
        name = f"{spec.model.name}-{self._count}"
        engine = Engine(
            spec,
            socket=self._sockets / f"{self._count}.sock",
            log=self._logs / f"vllm-{name}.log",
            options=self._options,
        )
        async with AsyncExitStack() as undo:
            undo.push_async_callback(engine.stop)
            logger.info("starting %s", name)
            await engine.start()
            logger.info("%s is ready", name)
            undo.pop_all()
        return engine

    def _make_room(self) -> None:
        """Stop the longest unused server, unless one is ending already."""
        idle = sorted(self._idle(), key=self._last_used.__getitem__)
        if idle and not self._ending:
            self._stop(idle[0])

    def _drop_dead(self) -> None:
        for spec, start in list(self._starts.items()):
            if start.done() and not (_succeeded(start) and start.result().is_alive):
                self._stop(spec)

    def _stop(self, spec: EngineSpec) -> asyncio.Task[None]:
        """Begin to stop a server; nobody is sent to it any more."""
        logger.info("stopping the server of %s", spec.model.name)
        ending = asyncio.create_task(_end(self._starts.pop(spec)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending

    def _running(self) -> dict[EngineSpec, Engine]:
        return {spec: start.result() for spec, start in self._starts.items() if _succeeded(start)}

    def _idle(self) -> list[EngineSpec]:
        return [spec for spec in self._running() if not self._users[spec]]


async def _end(start: asyncio.Task[Engine]) -> None:
    start.cancel()
    await asyncio.wait([start])
    if _succeeded(start):
        await start.result().stop()


def _succeeded(start: asyncio.Task[Engine]) -> bool:
    return start.done() and not start.cancelled() and start.exception() is None
