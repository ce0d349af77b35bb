"""The long-lived parts of one API process; `create_app` makes them, requests share them."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy.orm import Session, sessionmaker

from api.services.grader_pool import GraderPool
from api.services.serving import Serving
from core.judges import JudgeBook
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore


@dataclass(frozen=True)
class Parts:
    """Everything a request may need besides its own session."""

    settings: Settings
    sessions: sessionmaker[Session]
    store: ObjectStore
    registry: Registry
    serving: Serving
    graders: GraderPool
    judges: JudgeBook


def get_parts(request: Request) -> Parts:
    """Return the parts of the app that serves `request`."""
    return cast(Parts, request.app.state.parts)


PartsDep = Annotated[Parts, Depends(get_parts)]
