"""The messages of a chat request."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from api.schemas.common import RequestBody, list_or_text


def _refuse(value: Any) -> None:
    if value is not None:
        raise ValueError("this server does not support it; leave it out")


#: A field of OpenAI's that is known here only to be refused.
Unsupported = Annotated[None, BeforeValidator(_refuse)]


def _inside(url: str) -> str:
    if not url.startswith("data:image/"):
        raise ValueError("must hold the image itself, as data:image/png;base64,…")
    return url


class ImageUrl(RequestBody):
    """An image inside of the request; one elsewhere is not fetched, the server calls nobody."""

    url: Annotated[
        str, AfterValidator(_inside), Field(json_schema_extra={"pattern": "^data:image/"})
    ]
    detail: Literal["auto", "low", "high", "original"] | None = None


class Part(RequestBody):
    """A part of a message's content."""

    type: Literal["text", "refusal", "image_url"]
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None

    @model_validator(mode="after")
    def _has_its_content(self) -> Self:
        if getattr(self, self.type) is None:
            raise ValueError(f"a part of type '{self.type}' needs the field '{self.type}'")
        return self

    def passed_on(self) -> dict[str, Any]:
        """Return the part in a form that the model server reads: a refusal is text to it."""
        if self.type == "refusal":
            return {"type": "text", "text": self.refusal}
        return self.model_dump(exclude_none=True)


Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Part], Field(min_length=1), Tag("list")],
    Discriminator(list_or_text),
]


def _shows_images(content: str | list[Part] | None) -> bool:
    return isinstance(content, list) and any(part.type == "image_url" for part in content)


class CalledFunction(RequestBody):
    """A call's function; `arguments` is JSON as the model wrote it."""

    name: str
    arguments: str


class Call(RequestBody):
    """A tool call that the model made earlier."""

    id: str
    type: Literal["function"]
    function: CalledFunction
    #: Accumulated stream chunks carry it, and clients send them back.
    index: int | None = None


#: What the model server does not read: clients send answers back as they got them.
_ONLY_IN_ANSWERS: Any = {
    "refusal": True,
    "annotations": True,
    "audio": True,
    "function_call": True,
    "tool_calls": {"__all__": {"index"}},
}


class Message(RequestBody):
    """One message; fields that only answers carry are accepted: clients send them back."""

    role: Literal["developer", "system", "user", "assistant", "tool"]
    content: Content | None = None
    name: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    annotations: list[Any] | None = None
    audio: Unsupported = None
    function_call: Unsupported = None

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if self.role == "assistant":
            if self.content is None and not self.tool_calls and self.refusal is None:
                raise ValueError("a message of the assistant needs 'content' or 'tool_calls'")
        elif self.content is None:
            raise ValueError(f"a message with the role '{self.role}' needs 'content'")
        elif self.tool_calls:
            raise ValueError("only messages of the assistant have 'tool_calls'")
        if self.role != "user" and _shows_images(self.content):
            raise ValueError(f"a message with the role '{self.role}' has text only, no images")
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message with the role 'tool' needs 'tool_call_id'")
        return self

    def passed_on(self) -> dict[str, Any]:
        """Return the message in the form that the model server reads."""
        sent = self.model_dump(exclude_none=True, exclude=_ONLY_IN_ANSWERS)
        content = self.refusal if self.content is None else self.content
        if isinstance(content, list):
            return {**sent, "content": [part.passed_on() for part in content]}
        return {**sent, "content": content}
