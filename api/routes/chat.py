"""/v1/chat/completions: checked here, answered by the model-serving service."""

from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.auth import PrincipalDep
from api.bodies import json_body
from api.parts import PartsDep
from api.schemas.chat import ChatRequest
from api.services.models import resolve
from api.services.serving import Relay, Target
from api.tenant import Tenant

router = APIRouter(prefix="/v1/chat/completions")

ChatBody = Annotated[ChatRequest, Depends(json_body(ChatRequest))]


def get_target(body: ChatBody, principal: PrincipalDep, parts: PartsDep) -> Target:
    """Return what the body's model name stands for, or raise `NotFound`.

    The transaction ends here: the model's answer may take minutes.
    """
    with parts.sessions() as session:
        tenant = Tenant(session=session, project_id=principal.project_id)
        return resolve(tenant, parts.registry, body.model)


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


@router.post("")
async def create_chat_completion(
    body: ChatBody, target: Annotated[Target, Depends(get_target)], parts: PartsDep
) -> Response:
    """Answer a conversation with a base model, a trained model or a checkpoint."""
    request = body.passed_on(target.name)
    if body.stream:
        return EventStream(await parts.serving.stream(request, target))
    answer = await parts.serving.complete(request, target)
    return Response(answer, media_type="application/json")
