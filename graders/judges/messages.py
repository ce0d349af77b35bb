"""The `input` of a judge: messages as OpenAI's graders hold them, and as chat requests want them.

    {"role": "user", "content": "Rate this: {{sample.output_text}}"}

`content` is a text, one part or a list of texts and parts: `input_text`, `output_text`,
`input_image`, `input_audio`. Every text in it is a template.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny

from graders.errors import GradeError, SpecError, SpecProblem, TemplateError
from graders.judges.config import Modality
from graders.judges.judge import ChatMessage
from graders.judges.parsing import parsed
from graders.paths import Context
from graders.problems import sentence
from graders.template import Template, TemplateText

_Fill: TypeAlias = Callable[[Context], ChatMessage]

#: Most messages of one judge, and most parts of one message.
MAX_MESSAGES, MAX_PARTS = 100, 100
#: Longest prompt, in characters; images and audio count with their data.
MAX_PROMPT_CHARS = 16_000_000

_NOT_FETCHABLE = "An image must be an https:// or data:image/ URL."


class Part(BaseModel):
    """One piece of a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    modality: ClassVar[Modality] = "text"

    def templates(self) -> list[str]:
        """The templates in it."""
        raise NotImplementedError

    def compiled(self) -> _Fill:
        """What makes a part of a chat request of it."""
        raise NotImplementedError


class TextPart(Part):
    type: Literal["input_text", "output_text"]
    text: TemplateText

    def templates(self) -> list[str]:
        return [self.text]

    def compiled(self) -> _Fill:
        text = Template.parse(self.text)
        return lambda context: {"type": "text", "text": text.render(context)}


def _image_url(text: str) -> str:
    if not Template.parse(text).paths and not _is_fetchable(text):
        raise ValueError(_NOT_FETCHABLE)
    return text


def _is_fetchable(url: str) -> bool:
    # The judge's server fetches it: nothing but the web may be named, least of all its own files.
    return url.startswith(("https://", "data:image/"))


class ImagePart(Part):
    modality = "image"
    type: Literal["input_image"]
    image_url: Annotated[TemplateText, AfterValidator(_image_url)]
    detail: Literal["auto", "low", "high"] | None = None

    def templates(self) -> list[str]:
        return [self.image_url]

    def compiled(self) -> _Fill:
        url = Template.parse(self.image_url)
        detail = {"detail": self.detail} if self.detail else {}

        def fill(context: Context) -> ChatMessage:
            address = url.render(context)
            if not _is_fetchable(address):
                raise GradeError("invalid_variable_error", _NOT_FETCHABLE)
            return {"type": "image_url", "image_url": {"url": address, **detail}}

        return fill


class Audio(BaseModel):
    model_config = Part.model_config
    data: TemplateText
    format: Literal["mp3", "wav"]


class AudioPart(Part):
    modality = "audio"
    type: Literal["input_audio"]
    input_audio: Audio

    def templates(self) -> list[str]:
        return [self.input_audio.data]

    def compiled(self) -> _Fill:
        data, format = Template.parse(self.input_audio.data), self.input_audio.format

        def fill(context: Context) -> ChatMessage:
            audio = {"data": data.render(context), "format": format}
            return {"type": "input_audio", "input_audio": audio}

        return fill


_PARTS: dict[str, type[Part]] = {
    "input_text": TextPart,
    "output_text": TextPart,
    "input_image": ImagePart,
    "input_audio": AudioPart,
}


def _part(raw: Any, param: str) -> Part:
    kind = raw.get("type") if isinstance(raw, dict) else None
    if not isinstance(kind, str) or kind not in _PARTS:
        message = f"A part must be an object whose 'type' is one of {', '.join(_PARTS)}."
        raise SpecError([SpecProblem(param, message)])
    return parsed(_PARTS[kind], raw, param)


def _text(raw: str, param: str) -> str:
    try:
        Template.parse(raw)
    except TemplateError as error:
        problem = SpecProblem(param, sentence(str(error)), "template_parse_error")
        raise SpecError([problem]) from error
    return raw


def _content(raw: Any, param: str) -> Any:
    if not isinstance(raw, list):
        return _piece(raw, param)
    if not 0 < len(raw) <= MAX_PARTS:
        message = f"A message has 1 to {MAX_PARTS} parts, not {len(raw)}."
        raise SpecError([SpecProblem(param, message)])
    return [_piece(piece, f"{param}.{at}") for at, piece in enumerate(raw)]


def _piece(raw: Any, param: str) -> str | Part:
    return _text(raw, param) if isinstance(raw, str) else _part(raw, param)


class Message(BaseModel):
    """One message of a judge's `input`."""

    model_config = Part.model_config
    role: Literal["user", "assistant", "system", "developer"]
    content: str | SerializeAsAny[Part] | list[str | SerializeAsAny[Part]]
    type: Literal["message"] | None = None

    @property
    def parts(self) -> list[Part]:
        """The parts, where the content is not a plain text; a text between them is one."""
        if isinstance(self.content, str):
            return []
        pieces = [self.content] if isinstance(self.content, Part) else self.content
        return [
            TextPart(type="input_text", text=piece) if isinstance(piece, str) else piece
            for piece in pieces
        ]

    def templates(self) -> Iterator[str]:
        """Every template in the message."""
        if isinstance(self.content, str):
            yield self.content
        for part in self.parts:
            yield from part.templates()

    def compiled(self) -> _Fill:
        """What makes a message of a chat request of it; templates are parsed here, once."""
        fills = [part.compiled() for part in self.parts]
        text = Template.parse(self.content) if isinstance(self.content, str) else None

        def fill(context: Context) -> ChatMessage:
            if text is not None:
                return {"role": self.role, "content": text.render(context)}
            filled = [fill(context) for fill in fills]
            # A plain text is understood everywhere, a list of parts only by some servers.
            plain = len(filled) == 1 and filled[0]["type"] == "text"
            return {"role": self.role, "content": filled[0]["text"] if plain else filled}

        return fill


def _messages(raw: Any) -> Any:
    if not isinstance(raw, list) or not 0 < len(raw) <= MAX_MESSAGES:
        message = f"Must be a list of 1 to {MAX_MESSAGES} messages, each with role and content."
        raise SpecError([SpecProblem("input", message)])
    messages = []
    for at, entry in enumerate(raw):
        given = entry
        if isinstance(entry, dict) and "content" in entry:
            given = {**entry, "content": _content(entry["content"], f"input.{at}.content")}
        messages.append(parsed(Message, given, f"input.{at}"))
    return messages


#: The field `input` of a judge.
Messages: TypeAlias = Annotated[list[Message], BeforeValidator(_messages), Field(min_length=1)]


def _size(content: Any) -> int:
    """How many characters there are in a message, its parts' included."""
    if isinstance(content, str):
        return len(content)
    parts = content.values() if isinstance(content, dict) else content
    return sum(_size(part) for part in parts)


class Prompt:
    """Compiled messages."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._fills = [message.compiled() for message in messages]

    def render(self, context: Context, request: str) -> list[ChatMessage]:
        """The messages for one sample, with `request` at the end of what the user says.

        It is added to the last message, as many chat templates want the roles to alternate.
        """
        messages, size = [], 0
        for fill in self._fills:
            messages.append(fill(context))
            size += _size(messages[-1]["content"])
            if size > MAX_PROMPT_CHARS:
                detail = f"A judge's messages may hold {MAX_PROMPT_CHARS:,} characters together."
                raise GradeError("other_error", detail)
        last = messages[-1]
        if last["role"] != "user":
            return [*messages, {"role": "user", "content": request}]
        if isinstance(last["content"], str):
            content: Any = f"{last['content']}\n\n{request}"
        else:
            content = [*last["content"], {"type": "text", "text": request}]
        return [*messages[:-1], {"role": "user", "content": content}]
