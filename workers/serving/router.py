"""From the weights that a request names to a server that holds them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from core.errors import NotFound
from core.registry import BaseModel, Registry
from workers.serving.dialect import HERMES, Dialect, dialect_of
from workers.serving.engine import OWN, RANKS, EngineSpec, rank_class
from workers.serving.pool import EnginePool
from workers.serving.target import Target
from workers.serving.weights import WeightCache, Weights


@dataclass(frozen=True)
class Served:
    """Weights that a server holds: its client, their name inside it, and how they are spoken to."""

    client: httpx.AsyncClient
    name: str
    dialect: Dialect


class ModelRouter:
    """Base models and their adapters share a server; full weights get one of their own.

    With `merge_adapters` an adapter is folded into its base model and served as full weights.
    """

    def __init__(
        self, registry: Registry, cache: WeightCache, pool: EnginePool, *, merge_adapters: bool
    ) -> None:
        self._registry, self._cache, self._pool = registry, cache, pool
        self._merge_adapters = merge_adapters
        self._arriving: dict[Target, asyncio.Task[Weights]] = {}

    @asynccontextmanager
    async def route(self, target: Target) -> AsyncIterator[Served]:
        """Lend a client of the right server.

        Raises:
            NotFound: the base model is not in the list of models.
            StorageError: the weights cannot be fetched.
            EngineFailed: no server can be had.
        """
        base = self._registry.get(target.base)
        if base is None:
            raise NotFound(f"The list of base models has no {target.base!r}; add it there.")
        dialect = dialect_of(base)
        parser = dialect.parser or HERMES
        if target.artifact is None:
            rank = 0 if self._merge_adapters else RANKS[0]
            async with self._pool.use(_shared(base, rank, parser)) as engine:
                yield Served(engine.client, OWN, dialect)
            return
        weights = await self._weights(target, target.artifact, base)
        if target.kind == "full" or self._merge_adapters:
            spec = EngineSpec(
                model=weights.path,
                context_tokens=base.context_tokens,
                tool_parser=parser,
                chat_template=base.chat_template,
            )
            async with self._pool.use(spec) as engine:
                yield Served(engine.client, OWN, dialect)
            return
        async with self._pool.use(_shared(base, rank_class(weights.path), parser)) as engine:
            await engine.load_adapter(weights.digest, weights.path)
            yield Served(engine.client, weights.digest, dialect)

    async def _weights(self, target: Target, artifact: str, base: BaseModel) -> Weights:
        """Fetch weights; requests that come meanwhile share the work, and hold no thread each."""
        if target not in self._arriving:
            coming = asyncio.create_task(self._fetch(target, artifact, base))
            self._arriving[target] = coming
            coming.add_done_callback(lambda _: self._arriving.pop(target))
        # Shielded: a client that goes away must not end what others wait for.
        return await asyncio.shield(self._arriving[target])

    async def _fetch(self, target: Target, artifact: str, base: BaseModel) -> Weights:
        weights = await asyncio.to_thread(self._cache.fetch, artifact)
        if target.kind == "adapter" and self._merge_adapters:
            return await asyncio.to_thread(self._cache.merged, weights, base.path)
        return weights


def _shared(base: BaseModel, rank: int, parser: str) -> EngineSpec:
    return EngineSpec(
        model=base.path,
        context_tokens=base.context_tokens,
        max_lora_rank=rank,
        tool_parser=parser,
        chat_template=base.chat_template,
    )
