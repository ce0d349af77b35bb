"""/v1/chat/completions: checked here, answered by the model-serving service."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from api.auth import PrincipalDep
from api.bodies import json_body
from api.parts import PartsDep
from api.schemas.chat import ChatRequest
from api.schemas.completion_answers import ChatChunk, ChatCompletion
from api.schemas.inline import inline_schema
from api.services.answers import CHAT
from api.services.generating import generate, target_of
from api.services.serving import Target

router = APIRouter(prefix="/v1/chat/completions")

ChatBody = Annotated[ChatRequest, Depends(json_body(ChatRequest))]

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChatCompletion,
        "content": {"text/event-stream": {"schema": inline_schema(ChatChunk)}},
    }
}


def get_target(body: ChatBody, principal: PrincipalDep, parts: PartsDep) -> Target:
    """Return what the body's model name stands for."""
    return target_of(body.model, parts, project_id=principal.project_id)


@router.post("", responses=_ANSWERS)
async def create_chat_completion(
    body: ChatBody,
    target: Annotated[Target, Depends(get_target)],
    parts: PartsDep,
    request: Request,
) -> Response:
    """Answer a conversation with a base model, a trained model or a checkpoint."""
    return await generate(request, parts, CHAT, body=body, target=target)
