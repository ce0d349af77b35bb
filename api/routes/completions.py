"""/v1/completions, OpenAI's older form: a prompt that the model goes on from."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from api.auth import PrincipalDep
from api.bodies import json_body
from api.parts import PartsDep
from api.schemas.completion_answers import TextChunk, TextCompletion
from api.schemas.completions import CompletionRequest
from api.schemas.inline import inline_schema
from api.services.answers import TEXT
from api.services.generating import generate, target_of
from api.services.serving import Target

router = APIRouter(prefix="/v1/completions")

CompletionBody = Annotated[CompletionRequest, Depends(json_body(CompletionRequest))]

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": TextCompletion,
        "content": {"text/event-stream": {"schema": inline_schema(TextChunk)}},
    }
}


def get_target(body: CompletionBody, principal: PrincipalDep, parts: PartsDep) -> Target:
    """Return what the body's model name stands for."""
    return target_of(body.model, parts, project_id=principal.project_id)


@router.post("", responses=_ANSWERS)
async def create_completion(
    body: CompletionBody,
    target: Annotated[Target, Depends(get_target)],
    parts: PartsDep,
    request: Request,
) -> Response:
    """Go on from a prompt with a base model, a trained model or a checkpoint."""
    return await generate(request, parts, TEXT, body=body, target=target)
