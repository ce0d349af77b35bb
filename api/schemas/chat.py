"""The body of `POST /v1/chat/completions`: what is passed on, what has no effect, what is refused.

Ranges are OpenAI's. The insides of tools, content parts and response formats are checked by the
model server, which answers with its own sentence.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from api.schemas.common import RequestBody

#: Accepted so that clients need no change, and not passed on: they do not change the answer.
WITHOUT_EFFECT = frozenset(
    {
        "metadata",
        "modalities",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)


def _refuse(value: Any) -> None:
    if value is not None:
        raise ValueError("this server does not support it; leave it out")


Unsupported = Annotated[None, BeforeValidator(_refuse)]
Penalty = Annotated[float, Field(ge=-2, le=2)] | None


class Message(RequestBody):
    """One message; fields that only answers carry are accepted: clients send them back."""

    role: Literal["developer", "system", "user", "assistant", "tool", "function"]
    content: Any = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    annotations: Any = None
    audio: Unsupported = None
    function_call: Unsupported = None


class StreamOptions(RequestBody):
    """Options of a streamed answer."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class ChatRequest(RequestBody):
    """A chat request."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    frequency_penalty: Penalty = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    parallel_tool_calls: bool | None = None
    presence_penalty: Penalty = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None
    seed: int | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None

    metadata: dict[str, str] | None = None
    modalities: list[Literal["text"]] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default"] | None = None
    store: Literal[False] | None = None
    user: str | None = None

    audio: Unsupported = None
    function_call: Unsupported = None
    functions: Unsupported = None
    moderation: Unsupported = None
    prediction: Unsupported = None
    prompt_cache_options: Unsupported = None
    verbosity: Unsupported = None
    web_search_options: Unsupported = None

    def passed_on(self, model: str) -> dict[str, Any]:
        """Return the body for the model server: what was sent, under the name `model`."""
        sent = self.model_dump(exclude_unset=True, exclude=set(WITHOUT_EFFECT))
        return {**sent, "model": model}
