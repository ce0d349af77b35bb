"""The long-lived parts of one API process; `create_app` makes them, requests share them."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from api.admission import LastUse
from api.limits import RequestLimiter
from api.reads import Reads
from api.services.event_hub import EventHub
from api.services.grader_pool import GraderPool
from api.services.inspections import Inspections
from api.services.serving import Serving
from api.services.sink import Sinks
from core.judges import JudgeBook
from core.limits import Limits
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore
from graders.http import Outbound


@dataclass(frozen=True)
class Parts:
    """Everything a request may need besides its own session."""

    settings: Settings
    engine: Engine
    sessions: sessionmaker[Session]
    store: ObjectStore
    registry: Registry
    serving: Serving
    graders: GraderPool
    judges: JudgeBook
    inspections: Inspections
    sinks: Sinks
    limits: Limits
    limiter: RequestLimiter
    last_use: LastUse
    events: EventHub
    outbound: Outbound
    reads: Reads


def get_parts(request: Request) -> Parts:
    """Return the parts of the app that serves `request`."""
    return cast(Parts, request.app.state.parts)


async def _get_parts(request: Request) -> Parts:
    """Asynchronous only because FastAPI would call it in a thread otherwise."""
    return get_parts(request)


PartsDep = Annotated[Parts, Depends(_get_parts)]
