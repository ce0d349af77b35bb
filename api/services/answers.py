"""Bring what the model server answers to OpenAI's form: its own fields fall away."""

import json
import logging
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from api.errors import Unavailable, error_body
from api.schemas.completion_answers import ChatChunk, ChatCompletion, TextChunk, TextCompletion

logger = logging.getLogger(__name__)

DATA, DONE = "data: ", "data: [DONE]"


@dataclass(frozen=True)
class Form:
    """A path of the model server, with what it answers whole and in chunks."""

    path: str
    whole: type[BaseModel]
    chunk: type[BaseModel]


CHAT = Form("/v1/chat/completions", ChatCompletion, ChatChunk)
TEXT = Form("/v1/completions", TextCompletion, TextChunk)


def whole(form: Form, answer: bytes) -> bytes:
    """Return an answer in OpenAI's form; raises `Unavailable` when it is none at all."""
    try:
        return form.whole.model_validate_json(answer).model_dump_json().encode()
    except ValidationError as error:
        raise _not_an_answer(error) from error


def event(form: Form, line: str, *, usage: bool) -> str | None:
    """Return one line of an event stream in OpenAI's form, or None for one without content.

    `usage` says whether chunks have that field: null in all but the last. An error that the model
    server reports is passed on as OpenAI's error object, on which the SDKs raise.
    """
    if line.startswith(DONE):
        return DONE
    if not line.startswith(DATA):
        return None
    content = line.removeprefix(DATA)
    try:
        chunk = form.chunk.model_validate_json(content)
    except ValidationError as invalid:
        return failure(_reported(content) or _not_an_answer(invalid))
    # Clients that split lines as Python does would cut at other characters, were they sent plainly.
    return DATA + chunk.model_dump_json(exclude=None if usage else {"usage"}, ensure_ascii=True)


def failure(error: Unavailable) -> str:
    """Return the event that ends a stream which failed."""
    return DATA + json.dumps(error_body(error.status, error.message, code=error.code))


def _reported(content: str) -> Unavailable | None:
    """Return the failure that an event tells of; the model server's own words stay in the log."""
    try:
        body: Any = json.loads(content)
    except ValueError:
        return None
    if not isinstance(body, dict) or "error" not in body:
        return None
    logger.error("the model server broke a stream off: %s", content[:2000])
    return Unavailable(
        "The model server failed in the middle of the answer; send the request again.",
        code="serving_failed",
    )


def _not_an_answer(error: ValidationError) -> Unavailable:
    logger.error("the model server gave no proper answer: %s", error)
    return Unavailable(
        "The model server gave an answer that is none; send the request again, and if it stays,"
        " have the operator read its log.",
        code="serving_failed",
    )
