"""The serving service. Start it with `uvicorn --factory workers.serving.app:create_app`.

The API is its only client. `POST /v1/chat/completions` takes OpenAI's body and two headers:
`x-rft-model` says which weights to use (see `target`), `x-rft-token` proves who asks.
"""

import asyncio
import hmac
import logging
import shlex
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core.errors import ConfigurationError, InvalidKey, RftError
from core.registry import Registry
from core.settings import Settings, get_settings
from core.store import ObjectStore
from workers.serving import proxy
from workers.serving.engine import EngineFailed, is_cpu_build
from workers.serving.pool import EnginePool
from workers.serving.router import ModelRouter
from workers.serving.target import HEADER, parse_target
from workers.serving.weights import WeightCache

#: Seconds between two looks for idle servers.
_SWEEP_S = 15.0


def create_app(settings: Settings | None = None, *, store: ObjectStore | None = None) -> Starlette:
    """Build the application; model servers start with the first request for their model.

    Raises:
        ConfigurationError: no token is set, or the list of base models cannot be read.
    """
    settings = settings or get_settings()
    if settings.serving_token is None:
        raise ConfigurationError("Set RFT_SERVING_TOKEN to a secret that API and serving share.")
    logging.basicConfig(level=logging.INFO)
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
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
        await pool.stop_idle()
        cache.trim(in_use=pool.uses)


async def chat(request: Request) -> Response:
    """Answer a chat request with the weights that its header names."""
    given = request.headers.get("x-rft-token", "")
    if not hmac.compare_digest(given.encode(), request.app.state.token.encode()):
        raise InvalidKey("The header x-rft-token is missing or wrong; set RFT_SERVING_TOKEN alike.")
    target = parse_target(request.headers.get(HEADER))
    body = await request.json()
    router: ModelRouter = request.app.state.router
    # Open until the last byte is sent: a server in use is not stopped.
    async with AsyncExitStack() as stack:
        client, model = await stack.enter_async_context(router.route(target))
        response = await proxy.send(client, body, model=model)
        stack.push_async_callback(response.aclose)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            events = proxy.renamed_events(response, body["model"])
            return EventStream(events, held=stack.pop_all())
        answer = proxy.renamed(await response.aread(), body["model"])
    return Response(answer, status_code=response.status_code, media_type="application/json")


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
    """Say that the service is up, and which models are loaded."""
    return JSONResponse({"status": "ok", "models": request.app.state.pool.models()})


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RftError)
    content = {"message": error.message, "type": error.type, "param": error.param}
    return JSONResponse({"error": {**content, "code": error.code}}, status_code=error.status)


async def _answer_crash(request: Request, error: Exception) -> Response:
    logging.getLogger(__name__).error("model server: %r", error)
    broken = EngineFailed("The model server ended in the middle of the answer; try again.")
    return await _answer_error(request, broken)
