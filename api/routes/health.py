"""/health: whether this process and what it depends on work; no key is needed."""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from api.parts import Parts, PartsDep
from core.errors import StorageError
from graders.sandbox import SandboxConfig, support

router = APIRouter()

State = Literal["ok", "unreachable"]


class HealthParts(BaseModel):
    """The state of each part; addresses and reasons are in the log, not here."""

    database: State
    object_store: State
    serving: State


class Health(BaseModel):
    """`degraded`: models cannot answer, everything else works.

    `python_sandbox` is the tier that runs python graders on this machine; without one they are
    refused, and all else works.
    """

    status: Literal["ok", "degraded", "unavailable"]
    parts: HealthParts
    python_sandbox: Literal["process"] | None


@router.get("/health", responses={503: {"model": Health}})
async def health(parts: PartsDep, response: Response) -> Health:
    """Check the parts; 503 when database or object store cannot be used."""
    found = HealthParts(
        database=await run_in_threadpool(_database, parts),
        object_store=await run_in_threadpool(_object_store, parts),
        serving="ok" if await parts.serving.is_up() else "unreachable",
    )
    sandbox = await run_in_threadpool(support, SandboxConfig().python)
    status: Literal["ok", "degraded", "unavailable"] = "ok"
    if "unreachable" in (found.database, found.object_store):
        response.status_code = 503
        status = "unavailable"
    elif found.serving != "ok":
        status = "degraded"
    return Health(status=status, parts=found, python_sandbox=sandbox.tier)


def _database(parts: Parts) -> State:
    try:
        with parts.sessions() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return "unreachable"
    return "ok"


def _object_store(parts: Parts) -> State:
    try:
        parts.store.exists("health")
    except StorageError:
        return "unreachable"
    return "ok"
