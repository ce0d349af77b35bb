"""The body of `POST /v1/completions`, OpenAI's older form: a prompt that the model goes on from."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from api.schemas.chat import Sampling
from api.schemas.chat_messages import Unsupported

#: Prompts of one request, each of which may have `n` answers.
MAX_PROMPTS = 128

#: More than any vocabulary holds.
MAX_TOKEN = 2**31 - 1

Token = Annotated[int, Field(ge=0, le=MAX_TOKEN)]
Tokens = Annotated[list[Token], Field(min_length=1)]


def _one_form(value: Any) -> Any:
    """Say in one sentence what a prompt may be: pydantic would list every form that it is not."""
    if value in (None, "") or (isinstance(value, list) and "" in value):
        raise ValueError("a prompt is needed: these models have no beginning of their own")
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError("it must be a text, a list of texts, of token ids, or of lists of those")
    kinds = {bool if isinstance(each, bool) else type(each) for each in value}
    if kinds not in ({str}, {int}, {list}):
        raise ValueError("its elements must be all texts, all token ids, or all lists of token ids")
    if kinds != {int} and len(value) > MAX_PROMPTS:
        raise ValueError(f"it may hold {MAX_PROMPTS} prompts at most; send the others separately")
    return value


def _form(value: Any) -> str:
    return "text" if isinstance(value, str) else _FORMS[type(value[0])]


_FORMS = {str: "texts", int: "tokens", list: "lists"}

Prompt = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[list[str], Field(min_length=1), Tag("texts")]
    | Annotated[Tokens, Tag("tokens")]
    | Annotated[list[Tokens], Field(min_length=1), Tag("lists")],
    Discriminator(_form),
    BeforeValidator(_one_form),
]


class CompletionRequest(Sampling):
    """A completion request."""

    prompt: Prompt
    best_of: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None

    suffix: Unsupported = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if self.best_of:
            if self.best_of < (self.n or 1):
                raise ValueError("'best_of' must be at least 'n'")
            if self.stream:
                raise ValueError("'best_of' cannot be streamed: the best is known at the end")
            if self.echo:
                raise ValueError("'best_of' cannot rank texts that 'echo' the prompt; drop one")
        if self.max_tokens == 0 and not self.echo:
            raise ValueError("'max_tokens' may be 0 only with 'echo': there would be no answer")
        return self
