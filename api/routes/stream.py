"""Events as they happen, ours: `…/events/stream` of jobs and dry runs, as server-sent events."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from api.auth import PrincipalDep
from api.pagination import After
from api.parts import Parts, PartsDep
from api.tenant import DryRunDep, JobDep
from core.keys import Principal

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/v1/fine_tuning")

#: Seconds within which a client must take what is sent, or its stream ends.
TAKE_S = 30.0

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EXAMPLE = (
    "id: ftevent-abc123\n"
    'data: {"id":"ftevent-abc123","object":"fine_tuning.job.event","created_at":1764500000,'
    '"level":"info","message":"Fine-tuning job started","type":"message","data":{}}\n\n'
    "event: done\n"
    'data: {"object":"fine_tuning.job.stream.done","id":"ftjob-abc123","status":"succeeded"}\n\n'
)
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events, each with the fields of a listed event; the last is `done`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}

LastEventId = Annotated[
    str | None, Header(description="The last event that was seen; goes before `after`.")
]
From = Annotated[
    Literal["start", "now"],
    Query(alias="from", description="Where to begin without `Last-Event-ID` or `after`."),
]


class EventStream(StreamingResponse):
    """Server-sent events to one client, closed at the end however it comes.

    A client that takes nothing for `TAKE_S` seconds is let go; it can come back.
    """

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_HEADERS)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, then end what they came from."""

        async def within_time(message: Message) -> None:
            async with asyncio.timeout(TAKE_S):
                await send(message)

        async with aclosing(self._events):
            try:
                await super().__call__(scope, receive, within_time)
            except* (TimeoutError, ClientDisconnect):
                logger.info(
                    "An event stream ended: its client left, or took nothing for %g s", TAKE_S
                )


@router.get("/jobs/{fine_tuning_job_id}/events/stream", responses=RESPONSES)
async def stream_job_events(
    job: JobDep,
    principal: PrincipalDep,
    parts: PartsDep,
    after: After = None,
    begin: From = "start",
    last_event_id: LastEventId = None,
) -> EventStream:
    """Send a job's events, first those of the past, then each as it happens."""
    return await _stream(parts, job.id, principal, last_event_id or after, from_now=begin == "now")


@router.get("/dry_runs/{dry_run_id}/events/stream", responses=RESPONSES)
async def stream_dry_run_events(
    dry_run: DryRunDep,
    principal: PrincipalDep,
    parts: PartsDep,
    after: After = None,
    begin: From = "start",
    last_event_id: LastEventId = None,
) -> EventStream:
    """Send a dry run's events, first those of the past, then each as it happens."""
    after = last_event_id or after
    return await _stream(parts, dry_run.id, principal, after, from_now=begin == "now")


async def _stream(
    parts: Parts, job_id: str, principal: Principal, after: str | None, *, from_now: bool
) -> EventStream:
    parts.events.check_room(principal.project_id)
    # Found before the answer begins: from its first byte on, "now" is behind the client.
    place = await parts.events.place(job_id, after=after, from_now=from_now)
    return EventStream(parts.events.stream(job_id, principal, place))
