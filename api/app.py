"""The FastAPI application. Start it with `uvicorn --factory api.app:create_app`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from httpx import AsyncBaseTransport
from starlette.types import Scope

from api import dashboard, errors
from api.middleware import BodyLimit, ResponseHeaders
from api.parts import Parts
from api.routes import chat, dry_runs, files, graders, health, jobs, keys, models
from api.services.grader_pool import GraderPool
from api.services.serving import Serving
from api.upload import FORM_OVERHEAD
from core.db import make_engine, session_factory
from core.judges import JudgeBook
from core.process.environment import clean_environment
from core.registry import Registry
from core.settings import Settings, get_settings
from core.store import ObjectStore

#: The largest JSON body, in bytes.
MAX_JSON_BYTES = 4 * 1024 * 1024


def create_app(
    settings: Settings | None = None,
    *,
    store: ObjectStore | None = None,
    serving_transport: AsyncBaseTransport | None = None,
) -> FastAPI:
    """Build the application; nothing is contacted before the first request.

    Tests give `store` and `serving_transport` to do without servers. Raises `ConfigurationError`
    when the list of models or of judges cannot be read.
    """
    settings = settings or get_settings()
    engine = make_engine(settings.database_url)
    token = settings.serving_token
    registry = Registry.load(settings.models_file)
    judges = JudgeBook.load(settings, registry)
    parts = Parts(
        settings=settings,
        sessions=session_factory(engine),
        store=store or ObjectStore.from_settings(settings),
        registry=registry,
        judges=judges,
        serving=Serving(
            settings.serving_url,
            token=token.get_secret_value() if token else None,
            transport=serving_transport,
        ),
        graders=GraderPool(
            lambda grader: {**clean_environment(os.environ), **judges.environment(grader)}
        ),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await parts.serving.aclose()
        await parts.graders.aclose()
        engine.dispose()

    # The generated schema would lack the bodies, which are read after authentication.
    app = FastAPI(title="rft-service", lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.state.parts = parts
    _add_middleware(app, settings)
    errors.install(app)
    for module in (files, jobs, dry_runs, graders, models, chat, keys, health):
        app.include_router(module.router)
    dashboard.install(app, settings.dashboard_dir)
    return app


def _add_middleware(app: FastAPI, settings: Settings) -> None:
    upload_limit = settings.max_upload_bytes + FORM_OVERHEAD

    def limit_for(scope: Scope) -> int:
        return upload_limit if scope["path"] == "/v1/files" else MAX_JSON_BYTES

    # The last one added is the outermost.
    app.add_middleware(BodyLimit, limit_for=limit_for)
    app.add_middleware(ResponseHeaders, organization_id=settings.organization_id)
