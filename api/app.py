"""The FastAPI application. Start it with `uvicorn --factory api.app:create_app`."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from httpx import AsyncBaseTransport
from starlette.types import Scope

from api import dashboard, errors
from api.assembly import close_parts, make_parts
from api.audit import AuditTrail
from api.idempotency import Idempotency
from api.last_use import note_last_use
from api.middleware import BodyLimit, ResponseHeaders, add_cors
from api.openapi import reference
from api.paths import path_of
from api.query_names import refuse_unknown_query
from api.routes import (
    artifacts,
    chat,
    clone,
    completions,
    dry_runs,
    evals,
    files,
    graders,
    health,
    job_reads,
    jobs,
    keys,
    metrics,
    models,
    permissions,
    project_keys,
    projects,
    retention,
    samples,
    stream,
    uploads,
    validation,
    webhooks,
)
from api.routes import audit as audit_logs
from api.services.uploads import MAX_PART_BYTES
from api.stopping import told_to_stop
from api.upload import FORM_OVERHEAD
from core import audit
from core.notify import Announcer
from core.settings import Settings, get_settings
from core.starting import starting
from core.store import ObjectStore

#: The largest JSON body, in bytes.
MAX_JSON_BYTES = 4 * 1024 * 1024

#: What is asked most is found first.
ROUTES = (
    job_reads,
    files,
    jobs,
    dry_runs,
    graders,
    models,
    chat,
    completions,
    evals,
    keys,
    projects,
    project_keys,
    permissions,
    audit_logs,
    health,
    uploads,
    validation,
    stream,
    webhooks,
    metrics,
    samples,
    artifacts,
    clone,
    retention,
)


def create_app(
    settings: Settings | None = None,
    *,
    store: ObjectStore | None = None,
    serving_transport: AsyncBaseTransport | None = None,
) -> FastAPI:
    """Build the application; nothing is contacted before the first request.

    Tests give `store` and `serving_transport` to do without servers. Raises `ConfigurationError`
    when the list of models or of judges cannot be read, and `SystemExit` where the settings come
    from the environment: whoever started the program reads one sentence.
    """
    if settings is not None:
        return _build(settings, store, serving_transport)
    with starting():
        return _build(get_settings(), store, serving_transport)


def _build(
    settings: Settings, store: ObjectStore | None, serving_transport: AsyncBaseTransport | None
) -> FastAPI:
    parts = make_parts(settings, store=store, serving_transport=serving_transport)
    announcer = Announcer(settings.broker_url, on_jobs=parts.events.look)
    announcer.attach(parts.sessions)
    audit.watch(parts.sessions)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # What is loaded stays: without this, each full collection walks all of it while nobody
        # is answered, for some 100 ms.
        gc.collect()
        gc.freeze()
        noting = asyncio.create_task(note_last_use(parts))
        with told_to_stop(parts.events.end_streams):
            yield
        noting.cancel()
        announcer.close()
        await close_parts(parts)

    app = FastAPI(title="rft-service", lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.state.parts = parts
    _add_middleware(app, settings)
    errors.install(app)
    for module in ROUTES:
        app.include_router(module.router, dependencies=[Depends(refuse_unknown_query)])
    dashboard.install(app, settings.dashboard_dir)
    reference.install(app)
    return app


def _add_middleware(app: FastAPI, settings: Settings) -> None:
    upload_limit = settings.max_upload_bytes + FORM_OVERHEAD

    def limit_for(scope: Scope) -> int:
        path = path_of(scope)
        if path == "/v1/files":
            return upload_limit
        is_part = path.startswith("/v1/uploads/") and path.endswith("/parts")
        return MAX_PART_BYTES + FORM_OVERHEAD if is_part else MAX_JSON_BYTES

    # The last one added is the outermost.
    app.add_middleware(AuditTrail)
    app.add_middleware(Idempotency)
    app.add_middleware(BodyLimit, limit_for=limit_for)
    add_cors(app, settings.cors_origins)
    app.add_middleware(ResponseHeaders, organization_id=settings.organization_id)
