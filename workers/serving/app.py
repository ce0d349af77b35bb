"""The serving service. Start it with `uvicorn --factory workers.serving.app:create_app`.

API and workers are its clients. `POST /v1/chat/completions` and `/v1/completions` take OpenAI's
bodies and two headers: `x-rft-model` says which weights to use (see `target`), `x-rft-token` proves
who asks.
"""

import asyncio
import hmac
import logging
import shlex
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core.errors import ConfigurationError, InvalidKey, RftError, StorageError
from core.leaving import ClientLeft, unless_left
from core.registry import Registry
from core.settings import Settings, get_settings
from core.starting import starting
from core.store import ObjectStore
from workers.serving import answers
from workers.serving.engine import EngineFailed, engine_version, is_cpu_build
from workers.serving.pool import EnginePool
from workers.serving.requests import CHAT, TEXT, chat_body, text_body
from workers.serving.router import ModelRouter, Served
from workers.serving.target import HEADER, Target, parse_target
from workers.serving.weights import WeightCache

logger = logging.getLogger(__name__)

#: Seconds between two looks for idle servers and deleted models.
_SWEEP_S = 15.0


def create_app(settings: Settings | None = None, *, store: ObjectStore | None = None) -> Starlette:
    """Build the application; model servers start with the first request for their model.

    Raises:
        ConfigurationError: no token is set, or the list of base models cannot be read.
        SystemExit: the same, for a program that takes its settings from the environment: whoever
            started it reads one sentence.
    """
    if settings is not None:
        return _build(settings, store)
    with starting():
        return _build(get_settings(), store)


def _build(settings: Settings, store: ObjectStore | None) -> Starlette:
    if settings.serving_token is None:
        raise ConfigurationError("Set RFT_SERVING_TOKEN to a secret that API and serving share.")
    logging.basicConfig(level=logging.INFO)
    app = Starlette(
        routes=[
            Route(CHAT, generate, methods=["POST"]),
            Route(TEXT, generate, methods=["POST"]),
            Route("/health", health),
        ],
        exception_handlers={RftError: _answer_error, httpx.TransportError: _answer_crash},
        lifespan=_lifespan,
    )
    app.state.token = settings.serving_token.get_secret_value()
    app.state.settings = settings
    app.state.registry = Registry.load(settings.models_file)
    app.state.store = store or ObjectStore.from_settings(settings)
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    data = settings.data_dir.resolve() / "serving"
    cache = WeightCache(data / "weights", app.state.store)
    # A folder of its own: socket paths are limited to some hundred characters.
    with tempfile.TemporaryDirectory(prefix="rft-serving-") as sockets:
        pool = EnginePool(
            sockets=Path(sockets),
            logs=data / "logs",
            limit=settings.serving_engines,
            idle_s=settings.serving_idle_s,
            options=tuple(shlex.split(settings.serving_options)),
        )
        app.state.pool = pool
        app.state.router = ModelRouter(
            app.state.registry, cache, pool, merge_adapters=is_cpu_build()
        )
        sweeper = asyncio.create_task(_sweep(pool, cache))
        try:
            yield
        finally:
            sweeper.cancel()
            await pool.close()


async def _sweep(pool: EnginePool, cache: WeightCache) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        await sweep(pool, cache)


async def sweep(pool: EnginePool, cache: WeightCache) -> None:
    """Stop idle servers, let go of deleted models, and keep the weights within their limit."""
    await pool.stop_idle()
    try:
        for digest in await asyncio.to_thread(cache.orphans):
            if all([await pool.release(folder) for folder in cache.folders(digest)]):
                await asyncio.to_thread(cache.drop, digest)
    except (StorageError, httpx.TransportError) as error:
        logger.warning("what was deleted is looked for again later: %s", error)
    for folder in await asyncio.to_thread(cache.surplus):
        if not pool.uses(folder):
            await asyncio.to_thread(cache.remove, folder)


async def generate(request: Request) -> Response:
    """Answer a request with the weights that its header names."""
    given = request.headers.get("x-rft-token", "")
    if not hmac.compare_digest(given.encode(), request.app.state.token.encode()):
        raise InvalidKey("The header x-rft-token is missing or wrong; set RFT_SERVING_TOKEN alike.")
    target = parse_target(request.headers.get(HEADER))
    body = await request.json()
    try:
        return await unless_left(request.receive, _answer(request, body, target))
    except ClientLeft:
        return Response()


async def _answer(request: Request, body: dict[str, Any], target: Target) -> Response:
    router: ModelRouter = request.app.state.router
    path, name = request.url.path, body.get("model", target.base)
    only_prompt = body.get("max_tokens") == 0
    fingerprint = target.fingerprint(engine_version())
    # Open until the last byte is sent: a server in use is not stopped.
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(router.route(target))
        response = await served.client.send(_asked(served, path, body), stream=True)
        stack.push_async_callback(response.aclose)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            events = answers.named_events(
                response, model=name, fingerprint=fingerprint, only_prompt=only_prompt
            )
            return EventStream(events, held=stack.pop_all())
        content = await response.aread()
    if response.is_success:
        answer = answers.named(content, model=name, fingerprint=fingerprint)
        if body.get("best_of"):
            answer = answers.best(answer, body)
        if only_prompt:
            answer = answers.without_answer(answer)
        return JSONResponse(answer)
    if response.is_client_error:
        content = answers.refusal(content, path, for_tools=bool(body.get("tools")))
    return Response(content, status_code=response.status_code, media_type="application/json")


def _asked(served: Served, path: str, body: dict[str, Any]) -> httpx.Request:
    """Return the request to the model server, under its own name for the model."""
    sent = chat_body(body, served.dialect) if path == CHAT else text_body(body)
    return served.client.build_request("POST", path, json={**sent, "model": served.name})


class EventStream(StreamingResponse):
    """A stream of events that gives back what it holds at its end, however it ends."""

    def __init__(self, events: AsyncIterator[bytes], *, held: AsyncExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, then close."""
        async with self._held:
            await super().__call__(scope, receive, send)


async def health(request: Request) -> Response:
    """Say that the service is up, what computes the answers, and which models are loaded."""
    models = request.app.state.pool.models()
    return JSONResponse({"status": "ok", "engine": engine_version(), "models": models})


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RftError)
    content = {"message": error.message, "type": error.type, "param": error.param}
    return JSONResponse({"error": {**content, "code": error.code}}, status_code=error.status)


async def _answer_crash(request: Request, error: Exception) -> Response:
    logger.error("model server: %r", error)
    broken = EngineFailed("The model server ended in the middle of the answer; try again.")
    return await _answer_error(request, broken)
