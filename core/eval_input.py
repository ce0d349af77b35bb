"""What a run asks a model: the messages of an item, and the fields of the chat request.

`input_messages` is a list of messages with `{{item.…}}` in them, or names a field of the item that
holds the messages. Both come out as messages of a chat request. The parts that OpenAI's Responses
API calls `input_text` and the like are written as chat requests want them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from core.errors import InvalidRequest
from graders.errors import GradeError, SpecProblem, TemplateError
from graders.judges.messages import Message, Messages
from graders.paths import Absent, Context, Path
from graders.problems import explain
from graders.template import paths_of

_ROLES = ("system", "developer", "user", "assistant", "tool")
#: What a message of a chat request has; datasets and answers carry more.
_MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")

#: The messages that the model reads for an item; raises `GradeError` when the item lacks a field.
Render = Callable[[Mapping[str, Any]], list[dict[str, Any]]]

#: The fields of `sampling_params` that a chat request has under the same name.
_SAME = ("temperature", "top_p", "seed", "max_completion_tokens")
#: OpenAI's defaults for what `sampling_params` leaves out.
DEFAULTS: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "seed": 42}


class _Template(BaseModel):
    input: Messages


def read_input(input_messages: Mapping[str, Any], *, param: str) -> Render:
    """Return what writes an item's messages; raises InvalidRequest that names what is wrong."""
    if input_messages["type"] == "item_reference":
        return _referenced(input_messages["item_reference"], f"{param}.item_reference")
    return _written(input_messages["template"], f"{param}.template")


def chat_fields(data_source: Mapping[str, Any], *, param: str) -> dict[str, Any]:
    """Return the sampling fields of the chat request that a run's data source asks for.

    Raises InvalidRequest for an option of the Responses API that chat requests do not have.
    """
    given = data_source.get("sampling_params") or {}
    fields = {**DEFAULTS, **{name: given[name] for name in _SAME if given.get(name) is not None}}
    if given.get("tools"):
        fields["tools"] = [
            _tool(tool, f"{param}.sampling_params.tools[{n}]")
            for n, tool in enumerate(given["tools"])
        ]
    form = given.get("response_format")
    if data_source["type"] == "responses":
        form = _text_format(given.get("text") or {}, f"{param}.sampling_params.text")
    if form is not None and form.get("type") != "text":
        fields["response_format"] = form
    return fields


def _tool(tool: Mapping[str, Any], param: str) -> dict[str, Any]:
    """Return a tool of either API as chat requests write it."""
    if tool.get("type") == "function" and "function" in tool:
        return dict(tool)
    if tool.get("type") == "function" and "name" in tool:
        function = {name: value for name, value in tool.items() if name != "type"}
        return {"type": "function", "function": function}
    raise InvalidRequest(
        f"The tool {tool.get('type')!r} runs on OpenAI's servers and is not available here; give"
        " tools of type 'function'.",
        param=param,
        code="unsupported_tool",
    )


def _text_format(text: Mapping[str, Any], param: str) -> dict[str, Any] | None:
    """Return the `text` of the Responses API as a `response_format`."""
    if unknown := sorted(text.keys() - {"format"}):
        raise InvalidRequest(
            f"Unknown parameter: '{param}.{unknown[0]}'; only 'format' has an effect here.",
            param=f"{param}.{unknown[0]}",
            code="unknown_parameter",
        )
    form = text.get("format")
    match form:
        case None:
            return None
        case {"type": "text" | "json_object" as kind}:
            return {"type": kind}
        case {"type": "json_schema", **inner}:
            return {"type": "json_schema", "json_schema": inner}
    raise InvalidRequest(
        f"Invalid value for '{param}.format': its type must be text, json_object or json_schema.",
        param=f"{param}.format.type",
        code="invalid_value",
    )


def read_paths(input_messages: Mapping[str, Any]) -> frozenset[Path]:
    """Return the fields of an item that input messages read; they passed `read_input`."""
    if input_messages["type"] == "item_reference":
        return frozenset([_path(input_messages["item_reference"])])
    return _paths(_Template.model_validate({"input": input_messages["template"]}).input)


def _paths(messages: Sequence[Message]) -> frozenset[Path]:
    return paths_of([text for message in messages for text in message.templates()])


def _path(reference: str) -> Path:
    return Path.parse(reference.strip().removeprefix("{{").removesuffix("}}").strip())


def _written(template: Any, param: str) -> Render:
    try:
        messages = _Template.model_validate({"input": template}).input
    except ValidationError as error:
        raise _invalid(explain(error, _Template)[0], param) from error
    if any(path.namespace == "sample" for path in _paths(messages)):
        raise _no_sample(param)
    fills = [message.compiled() for message in messages]
    for number, (message, fill) in enumerate(zip(messages, fills, strict=True)):
        if not _paths([message]):
            _check_constant(fill, f"{param}.{number}.content")

    def render(item: Mapping[str, Any]) -> list[dict[str, Any]]:
        context = Context({}, dict(item))
        return [_message(fill(context), "the message") for fill in fills]

    return render


def _check_constant(fill: Callable[[Context], dict[str, Any]], param: str) -> None:
    """Raise InvalidRequest for a message that no item can mend."""
    try:
        _message(fill(Context({}, {})), "the message")
    except GradeError as error:
        message = f"Invalid value for '{param}': {error.detail}"
        raise InvalidRequest(message, param=param, code="invalid_value") from error


def _referenced(reference: str, param: str) -> Render:
    try:
        path = _path(reference)
    except TemplateError as error:
        message = f"Invalid value for '{param}': {error}."
        raise InvalidRequest(message, param=param, code="invalid_value") from error
    if path.namespace != "item":
        raise _no_sample(param)

    def render(item: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            found = path.find(dict(item))
        except Absent as absent:
            hint = f"; did you mean {absent.suggestion}?" if absent.suggestion else "."
            raise GradeError("invalid_variable_error", f"{path} is missing{hint}") from absent
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        if not isinstance(found, list) or not found:
            detail = f"{path} must be a list of messages, each with role and content."
            raise GradeError("invalid_variable_error", detail)
        return [_message(each, f"{path}[{n}]") for n, each in enumerate(found)]

    return render


def _message(raw: Any, place: str) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("role") not in _ROLES:
        detail = f"{place} must be a message whose role is one of {', '.join(_ROLES)}."
        raise GradeError("invalid_variable_error", detail)
    message = {name: raw[name] for name in _MESSAGE_FIELDS if raw.get(name) is not None}
    if isinstance(message.get("content"), list):
        message["content"] = [_part(part) for part in message["content"]]
    return message


def _part(part: Any) -> dict[str, Any]:
    """Return a part of either API as chat requests write it.

    Nothing that the model server would fetch from somewhere gets through.
    """
    match part:
        case str() as text:
            return {"type": "text", "text": text}
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return _image(url)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image(url)
    detail = "A part of a message must be a text or an image."
    raise GradeError("invalid_variable_error", detail)


def _image(url: str) -> dict[str, Any]:
    if not url.startswith("data:image/"):
        detail = "Images are not fetched from elsewhere; give a data:image/ URL."
        raise GradeError("invalid_variable_error", detail)
    return {"type": "image_url", "image_url": {"url": url}}


def _no_sample(param: str) -> InvalidRequest:
    return InvalidRequest(
        "The input is written before there is a sample: it may read item.… only.",
        param=param,
        code="invalid_value",
    )


def _invalid(problem: SpecProblem, param: str) -> InvalidRequest:
    place = param + problem.param.removeprefix("input")
    return InvalidRequest(
        f"Invalid value for '{place}': {problem.message}", param=place, code=problem.code
    )
