"""What completions answer, chat and plain, whole and streamed.

The model server's answers are read through these models: what it adds of its own falls away, and
what OpenAI's schemas want is there. A field that may be absent but not null is left out when None.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

Finish = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


def _is_none(value: Any) -> bool:
    return value is None


def absent() -> Any:
    """Return a field that is left out when it is None."""
    return Field(default=None, exclude_if=_is_none)


def _zero(value: int | None) -> int:
    return value or 0


def _empty(value: list[Any] | None) -> list[Any]:
    return value or []


#: A number and a list that the model server may leave null.
Count = Annotated[int, BeforeValidator(_zero)]
Annotations = Annotated[list[dict[str, Any]], BeforeValidator(_empty)]


def _default(value: str | None) -> str:
    return value or "default"


#: There is one tier of service.
Tier = Annotated[Literal["default"], BeforeValidator(_default)]


class LogprobToken(BaseModel):
    """A token with its log-probability; `bytes` are those of its text."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class ChosenToken(LogprobToken):
    """A token of the answer, with the likeliest ones in its place."""

    top_logprobs: list[LogprobToken] = []


class ChatLogprobs(BaseModel):
    """Log-probabilities of an answer's tokens."""

    content: list[ChosenToken] | None = None
    refusal: list[ChosenToken] | None = None


class PromptDetails(BaseModel):
    """Of the prompt's tokens, those that were not computed anew."""

    cached_tokens: Count = 0


class AnswerDetails(BaseModel):
    """Of the answer's tokens, those that are reasoning."""

    reasoning_tokens: Count = 0


class Usage(BaseModel):
    """The tokens that a request took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails | None = absent()
    completion_tokens_details: AnswerDetails | None = absent()


class Called(BaseModel):
    """The function of a call; `arguments` is JSON as the model wrote it."""

    name: str
    arguments: str


class ToolCall(BaseModel):
    """A call that the model wants made."""

    id: str
    type: Literal["function"] = "function"
    function: Called


class ChatMessage(BaseModel):
    """The model's message. `reasoning` is there for models whose reasoning is told apart."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = absent()
    annotations: Annotations = []
    reasoning: str | None = absent()


class ChatChoice(BaseModel):
    """One of `n` answers."""

    index: int
    message: ChatMessage
    finish_reason: Finish
    logprobs: ChatLogprobs | None = None


class _Answer(BaseModel):
    id: str
    created: int
    model: str
    system_fingerprint: str | None = absent()


class ChatCompletion(_Answer):
    """The answer to a chat request."""

    object: Literal["chat.completion"] = "chat.completion"
    choices: list[ChatChoice]
    usage: Usage
    service_tier: Tier = "default"


class CalledPart(BaseModel):
    """A piece of a call's function."""

    name: str | None = absent()
    arguments: str | None = absent()


class ToolCallPart(BaseModel):
    """A piece of a call; `index` says of which one."""

    index: int
    id: str | None = absent()
    type: Literal["function"] | None = absent()
    function: CalledPart | None = absent()


class Delta(BaseModel):
    """What a chunk adds to an answer."""

    role: Literal["assistant"] | None = absent()
    content: str | None = absent()
    refusal: str | None = absent()
    tool_calls: list[ToolCallPart] | None = absent()
    reasoning: str | None = absent()


class ChunkChoice(BaseModel):
    """A chunk's part of one of `n` answers."""

    index: int
    delta: Delta
    finish_reason: Finish | None = None
    logprobs: ChatLogprobs | None = None


class ChatChunk(_Answer):
    """One event of a streamed chat answer."""

    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: list[ChunkChoice]
    usage: Usage | None = None
    service_tier: Tier = "default"


class TextLogprobs(BaseModel):
    """Log-probabilities in the older form: lists with an entry for each token.

    The first token of an echoed prompt has none: nothing stands before it.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = absent()
    text_offset: list[int]


class TextChoice(BaseModel):
    """One of the answers to one of the prompts, counted through."""

    index: int
    text: str
    finish_reason: Literal["stop", "length", "content_filter"]
    logprobs: TextLogprobs | None = None


class TextChunkChoice(TextChoice):
    """A chunk's part of it; only the last one has a reason for the end."""

    finish_reason: Literal["stop", "length", "content_filter"] | None = None  # type: ignore[assignment]


class TextCompletion(_Answer):
    """The answer to a completion request."""

    object: Literal["text_completion"] = "text_completion"
    choices: list[TextChoice]
    usage: Usage


class TextChunk(_Answer):
    """One event of a streamed completion."""

    object: Literal["text_completion"] = "text_completion"
    choices: list[TextChunkChoice]
    usage: Usage | None = None
