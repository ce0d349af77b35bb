"""The `process` tier: every call in a locked process of its own, forked from a warm server.

See `jail` for how a process is locked, and docs/sandbox.md for what that means.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from graders.outcome import Failure, Score
from graders.sandbox import verdict
from graders.sandbox.base import Program, Ran, SandboxError
from graders.sandbox.child import Child, End
from graders.sandbox.config import SandboxConfig
from graders.sandbox.forkserver import ForkServer
from graders.sandbox.pool import Pool, Watch, slots_for
from graders.sandbox.preload import worth_loading


class ProcessSandbox:
    """See `base.Sandbox`. The fork-server starts with the first call, and anew when it is gone."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._imports: set[str] = set()
        self._pool: Pool | None = None
        self._starting = asyncio.Lock()
        self._turns = asyncio.Semaphore(self.places)

    @property
    def places(self) -> int:
        """How many calls run at the same time."""
        return self._config.places

    @property
    def server_pid(self) -> int | None:
        """The fork-server's process, if one is running."""
        return self._pool.server_pid if self._pool else None

    def prepare(self, program: Program) -> None:
        """Have what the program imports loaded when the fork-server starts."""
        self._imports |= set(program.imports)

    async def run(self, program: Program, sample: dict[str, Any], item: dict[str, Any]) -> Ran:
        """Run one call; see `base.Sandbox`."""
        async with self._turns:
            pool = await self._running_pool()
            child = await pool.take()
            watch = Watch(pool, self._config.disk_mb << 20)
            try:
                end = await child.call(
                    program.source,
                    sample,
                    item,
                    timeout_s=self._config.timeout_s,
                    on_tick=watch.tick,
                )
            except ValueError as error:
                raise SandboxError(f"Sample and item are not plain data: {error}.") from error
            finally:
                status = pool.renew(child)
            outcome = await self._outcome(end, child, program, status)
        return Ran(outcome, _text(child), dict(child.notices.refused))

    async def close(self) -> None:
        """End the fork-server, and what runs with it."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _running_pool(self) -> Pool:
        if self._pool is not None and self._pool.is_usable:
            return self._pool
        async with self._starting:
            if self._pool is not None and not self._pool.is_usable:
                await self.close()
            if self._pool is None:
                slots = slots_for(self.places)
                preload = worth_loading(self._imports, self._config.preload)
                start = partial(ForkServer, self._config, slots=slots, preload=preload)
                self._pool = Pool(await _whatever_happens(asyncio.to_thread(start)))
            return self._pool

    async def _outcome(
        self, end: End, child: Child, program: Program, status: "asyncio.Future[int]"
    ) -> Score | Failure:
        match end:
            case End.REPLY:
                return verdict.of_reply(child.reply, program.source, self._config)
            case End.NONSENSE:
                return verdict.of_nonsense()
            case End.TIME:
                return verdict.of_time(self._config)
            case End.DISK:
                return verdict.of_disk(self._config)
            case End.REFUSALS:
                return verdict.of_refusals(child.notices.refused.total())
        return verdict.of_end(await status, bytes(child.output).decode(errors="replace"))


async def _whatever_happens(starting: Coroutine[Any, Any, ForkServer]) -> ForkServer:
    """Wait for a fork-server that is starting; it is ended if nobody wants it any more."""
    task = asyncio.create_task(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_end_unwanted)
        raise


def _end_unwanted(started: "asyncio.Task[ForkServer]") -> None:
    if not started.cancelled() and not started.exception():
        started.result().end()


def _text(child: Child) -> str:
    text = bytes(child.output).decode(errors="replace")
    dropped = child.dropped_bytes
    return f"{text}… ({dropped:,} more bytes)" if dropped else text
