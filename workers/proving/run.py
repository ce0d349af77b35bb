"""Take the next final model and ask the serving service for it, and for its base.

The job has succeeded by then, and nothing here changes that: a server that is away or answers with
other weights is told by an event and stands on the checkpoint.
"""

import asyncio
import dataclasses
import logging
import threading
import time
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from core import serving_proofs
from core.clock import now
from core.errors import ConfigurationError, StaleFence, StorageError
from core.events import add_event, storable
from core.models import Checkpoint, Job
from core.serving_proofs import FAILED, MAX_ATTEMPTS, PROVED, HeldProof
from workers.context import Context
from workers.evals.ending import RunFailed, WorkerStopping
from workers.evals.model import Model, Refusal, ServingAway
from workers.evals.run import Manner
from workers.proving import expected
from workers.proving.compare import Figures, judge, measure, tolerance
from workers.proving.expected import Expected
from workers.serving.target import Target

logger = logging.getLogger(__name__)

#: Seconds between the requests to a server that is away: three and a half minutes in all.
WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 90.0)
#: Most seconds until the work stops when its worker does.
LOOK_S = 1.0


class NotNow(Exception):
    """Nothing is known yet of the served model; the sentence says why. Another try may tell."""


def prove_next(context: Context, *, stopping: threading.Event, manner: Manner) -> str | None:
    """Claim the model that waits longest; returns its checkpoint's id, None when none was due."""
    if stopping.is_set():
        return None
    with context.sessions.begin() as session:
        held = serving_proofs.claim(session, ttl_s=context.settings.lease_ttl_s)
    if held is None:
        return None
    try:
        _prove(context, held, stopping, manner)
    except StaleFence:
        logger.warning("The proof of %s went on elsewhere, or was deleted", held.checkpoint_id)
    return held.checkpoint_id


def _prove(context: Context, held: HeldProof, stopping: threading.Event, manner: Manner) -> None:
    again = False
    try:
        if held.attempt > MAX_ATTEMPTS:
            raise expected.Unusable(
                "The workers that asked the serving service were lost; have the operator read"
                " their logs."
            )
        serving = asyncio.run(_held(context, held, stopping, manner))
    except WorkerStopping:
        with context.sessions.begin() as session:
            serving_proofs.give_back(session, held)
        return
    except expected.Unusable as reason:
        serving = _without_figures(held, str(reason))
    except NotNow as reason:
        again = held.attempt < MAX_ATTEMPTS
        more = f" Try {held.attempt} of {MAX_ATTEMPTS}; the next one follows." if again else ""
        serving = _without_figures(held, f"{reason}{more}")
    _record(context, held, serving, again=again)


def _without_figures(held: HeldProof, message: str) -> dict[str, Any]:
    return {
        "state": FAILED,
        "message": storable(message),
        "attempts": min(held.attempt, MAX_ATTEMPTS),
        "at": now(),
    }


async def _held(
    context: Context, held: HeldProof, stopping: threading.Event, manner: Manner
) -> dict[str, Any]:
    """Ask while the lease is kept up; whatever ends either ends both."""
    work = asyncio.create_task(_ask(context, held, manner))
    watch = asyncio.create_task(_watch(context, held, stopping))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            watch.result()
        return await work
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)


async def _watch(context: Context, held: HeldProof, stopping: threading.Event) -> None:
    """Extend the lease; raises StaleFence when it is lost, WorkerStopping at shutdown."""
    ttl_s = context.settings.lease_ttl_s
    held_until = time.monotonic() + ttl_s

    def beat() -> None:
        with context.sessions.begin() as session:
            serving_proofs.extend(session, held, ttl_s)

    while True:
        await asyncio.sleep(min(context.settings.heartbeat_s, LOOK_S))
        if stopping.is_set():
            raise WorkerStopping("this worker shuts down")
        asked = time.monotonic()
        try:
            await asyncio.to_thread(beat)
            held_until = asked + ttl_s
        except SQLAlchemyError as error:
            logger.warning("No heartbeat for %s: %s", held.checkpoint_id, error)
            if time.monotonic() > held_until:
                raise StaleFence(held.checkpoint_id, held.attempt) from error


async def _ask(context: Context, held: HeldProof, manner: Manner) -> dict[str, Any]:
    """Return what the proof says; raises NotNow and `expected.Unusable`."""
    with context.sessions() as session:
        checkpoint = session.get_one(Checkpoint, held.checkpoint_id)
        job = session.get_one(Job, checkpoint.job_id)
    base = context.registry.get(job.model)
    if base is None:
        raise expected.Unusable(f"The base model {job.model} is not served here any more.")
    trained = Target.model_validate(
        {"base": job.model, "artifact": checkpoint.object_prefix, "kind": checkpoint.kind}
    )
    try:
        rows = await asyncio.to_thread(
            expected.read,
            context.store,
            checkpoint.object_prefix,
            context_tokens=base.context_tokens,
        )
        served, engine = await _logprobs(context, trained, checkpoint.name, rows, manner)
        original, _ = await _logprobs(context, Target(base=job.model), job.model, rows, manner)
    except ServingAway as away:
        raise NotNow(
            f"The serving service could not be used for {away.waited_s:g} seconds: {away.reason}."
            " Have the operator run `rft-server doctor`."
        ) from away
    except StorageError as error:
        raise NotNow(error.message) from error
    except ConfigurationError as error:
        raise NotNow(error.message) from error
    except (RunFailed, Refusal) as refusal:
        raise NotNow(
            f"The serving service gave no log-probabilities: {refusal.message}"
        ) from refusal
    return _result(held, engine, measure(rows, served, original), checkpoint.proof or {})


async def _logprobs(
    context: Context, target: Target, name: str, rows: list[Expected], manner: Manner
) -> tuple[list[list[float]], str | None]:
    """Return what a model gives for each token of the completions, and the engine's name."""
    model = Model(context, target, name, waits_s=manner.waits_s, transport=manner.transport)
    try:
        # One by one: a server that computes prompts together rounds them otherwise, and the same
        # weights under another name would seem to differ.
        found = [await _of_one(model, row) for row in rows]
        return found, await model.engine()
    finally:
        await model.aclose()


async def _of_one(model: Model, row: Expected) -> list[float]:
    answer = await model.complete_text(
        {
            "prompt": [*row.prompt, *row.completion],
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0,
        }
    )
    logprobs = answer["choices"][0].get("logprobs") or {}
    values = logprobs.get("token_logprobs") or []
    values = values[len(row.prompt) : len(row.prompt) + len(row.completion)]
    if len(values) < len(row.completion) or not all(isinstance(v, (int, float)) for v in values):
        raise Refusal("server_error", "The answer lacks log-probabilities of the prompt.")
    return [float(value) for value in values]


def _result(
    held: HeldProof, engine: str | None, figures: Figures, export: dict[str, Any]
) -> dict[str, Any]:
    state, message = judge(figures, export)
    name, _, version = (engine or "").partition(" ")
    return {
        "state": state,
        "message": message,
        "attempts": held.attempt,
        "at": now(),
        "engine": {"name": name, "version": version or None} if name else None,
        "tolerance": tolerance(export),
        **dataclasses.asdict(figures),
    }


def _record(context: Context, held: HeldProof, serving: dict[str, Any], *, again: bool) -> None:
    """Put the result on the checkpoint; the last word about it is an event of the job, too."""
    with context.sessions.begin() as session:
        checkpoint = serving_proofs.record(session, held, serving, again=again)
        if again:
            logger.warning("%s is asked for later: %s", checkpoint.name, serving["message"])
            return
        proved = serving["state"] == PROVED
        add_event(
            session,
            checkpoint.job_id,
            _sentence(serving) if proved else f"Not proved to be served: {serving['message']}",
            level="info" if proved else "warn",
            data={"serving": serving},
        )


def _sentence(serving: dict[str, Any]) -> str:
    return (
        f"The served model agrees with the trained one: {serving['mean_difference']:.4f} nats per"
        f" token in the mean over {serving['tokens']} tokens of {serving['prompts']} prompts (limit"
        f" {serving['tolerance']:g}), {serving['mean_difference_to_base']:.4f} to the base model"
    )
