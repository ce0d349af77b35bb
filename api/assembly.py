"""Making the long-lived parts of an API process, and closing them."""

import os

from httpx import AsyncBaseTransport

from api.admission import LastUse
from api.limits import RequestLimiter
from api.parts import Parts
from api.reads import Reads
from api.services.event_hub import EventHub
from api.services.grader_pool import GraderPool
from api.services.inspections import Inspections
from api.services.serving import Serving
from api.services.sink import Sinks
from core.db import make_engine, session_factory
from core.judges import JudgeBook
from core.limits import Limits
from core.process.environment import clean_environment
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore
from graders.http import Outbound, Policy


def make_parts(
    settings: Settings,
    *,
    store: ObjectStore | None = None,
    serving_transport: AsyncBaseTransport | None = None,
) -> Parts:
    """Make the parts; nothing is contacted yet.

    Raises `ConfigurationError` when the list of models or of judges cannot be read.
    """
    token = settings.serving_token
    registry = Registry.load(settings.models_file)
    judges = JudgeBook.load(settings, registry)
    engine = make_engine(settings.database_url)
    sessions = session_factory(engine)
    store = store or ObjectStore.from_settings(settings)
    return Parts(
        settings=settings,
        engine=engine,
        sessions=sessions,
        store=store,
        inspections=Inspections(sessions, store),
        sinks=Sinks(store),
        registry=registry,
        judges=judges,
        limits=Limits.of(settings),
        limiter=RequestLimiter(settings.broker_url),
        last_use=LastUse(),
        events=EventHub(sessions, settings.broker_url),
        outbound=Outbound(Policy(judges.config.http.allow_hosts)),
        reads=Reads(settings.database_url, organization_id=settings.organization_id),
        serving=Serving(
            settings.serving_url,
            token=token.get_secret_value() if token else None,
            transport=serving_transport,
        ),
        graders=GraderPool(
            lambda grader: {**clean_environment(os.environ), **judges.environment(grader)}
        ),
    )


async def close_parts(parts: Parts) -> None:
    """Close what holds connections, processes or threads."""
    await parts.events.aclose()
    await parts.outbound.close()
    parts.limiter.close()
    await parts.serving.aclose()
    await parts.graders.aclose()
    parts.inspections.close()
    parts.reads.close()
    parts.engine.dispose()
