"""The body of `POST /v1/chat/completions`: what is passed on, what has no effect, what is refused.

Ranges are OpenAI's. Whether the model can do what is asked is the model server's to say.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from api.schemas.chat_messages import Message, Unsupported
from api.schemas.chat_tools import MAX_TOOLS, ResponseFormat, Tool, ToolChoice, check_choice
from api.schemas.common import RequestBody, list_or_text, object_or_text

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


def _boolean(value: Any) -> Any:
    """Refuse 0, which a literal takes for False."""
    if value is not None and not isinstance(value, bool):
        raise ValueError("must be false")
    return value


OnlyFalse = Annotated[Literal[False], BeforeValidator(_boolean)]
Penalty = Annotated[float, Field(ge=-2, le=2)] | None
TokenId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
#: By the token ids of the model's own tokenizer.
LogitBias = dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None
Text = Annotated[str, Field(min_length=1)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Stop = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[list[Text], Field(min_length=1, max_length=4), Tag("list")],
    Discriminator(list_or_text),
]
Choice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("text")]
    | Annotated[ToolChoice, Tag("object")],
    Discriminator(object_or_text),
]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)] | None


class StreamOptions(RequestBody):
    """Options of a streamed answer."""

    include_usage: bool | None = None
    include_obfuscation: OnlyFalse | None = None


class Sampling(RequestBody):
    """What chat and plain completions have in common."""

    model: Annotated[str, Field(min_length=1)]
    frequency_penalty: Penalty = None
    logit_bias: LogitBias = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    presence_penalty: Penalty = None
    seed: Seed = None
    stop: Stop | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    user: str | None = None

    @model_validator(mode="after")
    def _options_of_a_stream(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise ValueError("'stream_options' needs 'stream': true")
        return self

    @property
    def wants_usage(self) -> bool:
        """Whether the last chunk of a stream tells the tokens used."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def passed_on(self, model: str) -> dict[str, Any]:
        """Return the body for the model server: what was sent, under the name `model`."""
        # Nulls are dropped at the top only: inside of a JSON Schema they mean something.
        sent = self.model_dump(exclude_unset=True, exclude=set(WITHOUT_EFFECT), by_alias=True)
        body = {name: value for name, value in sent.items() if value is not None}
        if self.stream_options is not None:
            body["stream_options"] = {"include_usage": self.wants_usage}
        return {**body, "model": model}


class ChatRequest(Sampling):
    """A chat request."""

    messages: Annotated[list[Message], Field(min_length=1)]
    logprobs: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: ReasoningEffort | None = None
    response_format: ResponseFormat | None = None
    tool_choice: Choice | None = None
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    metadata: dict[str, str] | None = None
    modalities: list[Literal["text"]] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default"] | None = None
    store: OnlyFalse | None = None

    audio: Unsupported = None
    function_call: Unsupported = None
    functions: Unsupported = None
    moderation: Unsupported = None
    prediction: Unsupported = None
    prompt_cache_options: Unsupported = None
    verbosity: Unsupported = None
    web_search_options: Unsupported = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("'top_logprobs' needs 'logprobs': true")
        check_choice(self.tool_choice, self.tools)
        return self

    def passed_on(self, model: str) -> dict[str, Any]:
        """As of every request; messages are brought to the form that the model server reads."""
        body = super().passed_on(model)
        body["messages"] = [message.passed_on() for message in self.messages]
        if not self.tools:  # an empty list means none, which the model server refuses
            body.pop("tools", None)
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
        return body
