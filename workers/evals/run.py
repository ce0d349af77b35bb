"""Take the next run and work on it until it ends, or this worker no longer holds it.

Items are sampled and graded some at a time and stored in the order of the data source, so that a
run that another worker takes over goes on behind the last stored item and none is stored twice.
"""

import asyncio
import logging
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import undefer

from core import eval_runs
from core.errors import ConfigurationError, InvalidRequest, StaleFence, StorageError
from core.eval_items import Needed
from core.eval_runs import HeldRun, held_run
from core.models import Eval, EvalRun
from workers.context import Context
from workers.evals.bench import Bench
from workers.evals.ending import RunFailed, TryAgain, WorkerStopping
from workers.evals.grading import Graders
from workers.evals.model import Model, find_target
from workers.evals.sampling import Sampler
from workers.evals.source import Items, open_items
from workers.evals.tally import Tally

logger = logging.getLogger(__name__)

#: Claims without a stored item between them after which a run is given up.
MAX_ATTEMPTS = 5
#: Most seconds until a cancelled run stops.
LOOK_S = 1.0


@dataclass(frozen=True)
class Manner:
    """How a worker goes about runs: waits between the tries of a service that is away, in seconds.

    `transport` stands in for the serving service in tests.
    """

    waits_s: tuple[float, ...] = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
    transport: httpx.AsyncBaseTransport | None = field(default=None)


def run_next(
    context: Context, *, owner: str, stopping: threading.Event, manner: Manner
) -> str | None:
    """Claim the best queued run and work on it; returns its id, None when nothing was queued."""
    if stopping.is_set():
        return None
    with context.sessions.begin() as session:
        held = eval_runs.claim(session, owner=owner, ttl_s=context.settings.lease_ttl_s)
    if held is None:
        return None
    try:
        _work(context, held, stopping, manner)
    except StaleFence as stale:
        logger.warning("%s", stale)
    return held.run_id


def _work(context: Context, held: HeldRun, stopping: threading.Event, manner: Manner) -> None:
    """Work on a held run and leave it in its next status; raises StaleFence."""
    status, error = eval_runs.COMPLETED, None
    try:
        if held.attempts > MAX_ATTEMPTS:
            raise RunFailed(
                "worker_lost",
                f"The run came {MAX_ATTEMPTS} times to a worker that did not store an item; have"
                " the operator look into the worker's log, then start a new run.",
            )
        asyncio.run(_held(context, held, stopping, manner))
    except RunFailed as failed:
        status, error = eval_runs.FAILED, {"code": failed.code, "message": failed.message}
    except (TryAgain, WorkerStopping) as reason:
        logger.warning("%s goes back to the queue: %s", held.run_id, reason)
        counts = isinstance(reason, TryAgain)
        if counts:
            # Whatever it is may pass; and the lease is not kept up meanwhile.
            waits_s = (*manner.waits_s, 0.0)
            wait_s = waits_s[min(held.attempts, len(waits_s)) - 1]
            stopping.wait(min(wait_s, context.settings.lease_ttl_s / 2))
        with held_run(context.sessions, held) as (_, run):
            eval_runs.give_back(run, counts=counts)
        return
    with held_run(context.sessions, held) as (session, run):
        eval_runs.end(session, run, status, error)


async def _held(context: Context, held: HeldRun, stopping: threading.Event, manner: Manner) -> None:
    """Work while the lease is kept up; whatever ends either ends both."""
    work = asyncio.create_task(_attempt(context, held, manner))
    watch = asyncio.create_task(_watch(context, held, stopping))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        await (watch if watch.done() else work)
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)


async def _watch(context: Context, held: HeldRun, stopping: threading.Event) -> None:
    """Extend the lease; raises StaleFence when the run is lost, WorkerStopping at shutdown."""
    ttl_s = context.settings.lease_ttl_s
    pause_s = min(context.settings.heartbeat_s, LOOK_S)
    held_until = time.monotonic() + ttl_s

    def beat() -> None:
        with context.sessions.begin() as session:
            eval_runs.heartbeat(session, held, ttl_s)

    while True:
        await asyncio.sleep(pause_s)
        if stopping.is_set():
            raise WorkerStopping("this worker shuts down")
        asked = time.monotonic()
        try:
            await asyncio.to_thread(beat)
            held_until = asked + ttl_s
        except SQLAlchemyError as error:
            logger.warning("No heartbeat for %s: %s", held.run_id, error)
            if time.monotonic() > held_until:
                # From here on another worker may hold it.
                raise StaleFence(held.run_id, held.fence) from error


async def _attempt(context: Context, held: HeldRun, manner: Manner) -> None:
    with context.sessions() as session:
        run = session.get_one(EvalRun, held.run_id, options=[undefer(EvalRun.data_source)])
        owner = session.get_one(Eval, held.eval_id)
    criteria = owner.testing_criteria
    context.settings.data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=context.settings.data_dir, prefix="eval-") as folder:
        config = owner.data_source_config
        with await _open(context, run, config, Path(folder), waits_s=manner.waits_s) as items:
            total = await asyncio.to_thread(items.check, Needed(criteria, run.data_source))
            tally = Tally(criteria, total)
            done = await asyncio.to_thread(_go_on, context, held, tally)
            async with (
                _sampler(context, run, manner) as sampler,
                Graders(criteria, context.judges) as graders,
            ):
                bench = Bench(context, held, criteria, sampler, graders, tally)
                await bench.go_through(items, done)


async def _open(
    context: Context,
    run: EvalRun,
    config: dict[str, Any],
    folder: Path,
    *,
    waits_s: Sequence[float],
) -> Items:
    """Open the run's items; an object store that does not answer is asked again for a while."""
    for wait_s in (*waits_s, None):
        try:
            return await asyncio.to_thread(open_items, context, run, config, folder)
        except StorageError as error:
            logger.warning("%s waits for the object store: %s", run.id, error)
            if wait_s is None:
                break
        await asyncio.sleep(wait_s)
    raise RunFailed(
        "storage_unavailable",
        f"The object store could not be used for {sum(waits_s):g} seconds. Have the operator run"
        " `rft-server doctor`, then start a new run.",
    )


def _go_on(context: Context, held: HeldRun, tally: Tally) -> int:
    """Take the figures of an earlier holder, and show the run's total.

    Returns how many items are stored: the figures are written together with them.
    """
    with held_run(context.sessions, held) as (_, run):
        tally.go_on(run)
        tally.show(run)
    return tally.counted


@asynccontextmanager
async def _sampler(context: Context, run: EvalRun, manner: Manner) -> AsyncIterator[Sampler | None]:
    """What samples the items; None when they bring samples. Raises `RunFailed`."""
    if run.data_source["type"] == "jsonl":
        yield None
        return
    target = await asyncio.to_thread(find_target, context, run)
    base = context.registry.get(target.base)
    if base is None:
        message = f"The base model {target.base} is not served here any more."
        raise RunFailed("model_not_available", message)
    try:
        model = Model(
            context, target, run.model, waits_s=manner.waits_s, transport=manner.transport
        )
    except ConfigurationError as error:
        raise RunFailed("model_not_available", error.message) from error
    try:
        yield Sampler(model, run.data_source, context_tokens=base.context_tokens)
    except InvalidRequest as error:
        raise RunFailed("invalid_data_source", error.message) from error
    finally:
        await model.aclose()
