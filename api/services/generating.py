"""Answer a request of a route for completions, whole or as a stream."""

from contextlib import aclosing

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from api.parts import Parts
from api.schemas.chat import Sampling
from api.services.answers import Form
from api.services.models import resolve
from api.services.serving import Relay, Target
from api.tenancy import Tenant
from core.leaving import ClientLeft, unless_left


class EventStream(StreamingResponse):
    """A relayed stream that is closed at its end, however it ends.

    A client that leaves cancels the sending, not the relay: left alone, the model server would go
    on generating for nobody until Python collected the garbage.
    """

    def __init__(self, events: Relay) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, then close the relay."""
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


def target_of(name: str, parts: Parts, *, project_id: str) -> Target:
    """Return what a model name stands for in the project; raises `NotFound`.

    The transaction ends here: the model's answer may take minutes.
    """
    with parts.sessions() as session:
        tenant = Tenant(session=session, project_id=project_id)
        return resolve(tenant, parts.registry, name)


async def generate(
    request: Request, parts: Parts, form: Form, *, body: Sampling, target: Target
) -> Response:
    """Return the answer of the model server; generation ends when the client leaves."""
    sent = body.passed_on(target.name)
    try:
        if body.stream:
            opening = parts.serving.stream(form, sent, target)
            return EventStream(await unless_left(request.receive, opening))
        whole = parts.serving.complete(form, sent, target)
        answer = await unless_left(request.receive, whole)
    except ClientLeft as error:
        raise ClientDisconnect from error
    return Response(answer, media_type="application/json")
