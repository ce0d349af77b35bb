"""Rules about a row: its messages, what they may hold, and how they must end."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from rft.dataset.report import Finding
from rft.dataset.strictjson import pointer, shown
from rft.dataset.tools import ToolCalls, check_tools, declared_names

Kind: TypeAlias = Literal["reinforcement", "supervised", "warm_start"]

ROLES = ("developer", "system", "user", "assistant", "tool")

_COMMON_FIELDS = ("role", "content", "name")
_OWN_FIELDS = {
    "assistant": ("tool_calls", "refusal", "weight"),
    "tool": ("tool_call_id",),
}
_READ_IN_SUPERVISED = ("messages", "tools")


def check_row(row: dict[str, Any], kind: Kind) -> Iterator[Finding]:
    """Check one row of a dataset of this kind."""
    if "tools" in row:
        yield from check_tools(row["tools"])
    if kind == "supervised":
        for key in row:
            if key not in _READ_IN_SUPERVISED:
                message = "Supervised training reads messages and tools only."
                yield Finding("unused_field", pointer("", key), message)
    messages = row.get("messages")
    if not isinstance(messages, list) or not messages:
        message = "The row has no list of messages." if messages is None else "No message is there."
        yield Finding("messages_required", "/messages", message)
        return
    calls = ToolCalls(declared_names(row.get("tools")))
    for index, message in enumerate(messages):
        yield from _check_message(message, f"/messages/{index}", calls, kind)
    if all(isinstance(message, dict) for message in messages):
        yield from _check_end(messages, kind)


def needs_of(row: dict[str, Any]) -> Iterator[str]:
    """What a model must be able to do for this row: "tools", "image"."""
    found = row.get("messages")
    messages = [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
    if row.get("tools") or any(message.get("tool_calls") for message in messages):
        yield "tools"
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    if any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts):
        yield "image"


def _check_message(message: Any, path: str, calls: ToolCalls, kind: Kind) -> Iterator[Finding]:
    if not isinstance(message, dict):
        yield Finding("message_not_object", path, "The message is not an object.")
        return
    role = message.get("role")
    if role not in ROLES:
        said = "is missing" if role is None else f"{shown(repr(role))} is not known"
        yield Finding("unknown_role", f"{path}/role", f"The role {said}.")
        return
    yield from _check_fields(message, role, path)
    yield from _check_content(message, role, path)
    if role == "assistant":
        yield from _check_assistant(message, path, calls, kind)
    if role == "tool":
        yield from calls.check_result(message, path)


def _check_fields(message: dict[str, Any], role: str, path: str) -> Iterator[Finding]:
    known = _COMMON_FIELDS + _OWN_FIELDS.get(role, ())
    for key in message:
        if key == "tool_calls" and role != "assistant":
            text = f"A message of role {role} cannot call tools."
            yield Finding("invalid_tool_calls", f"{path}/{key}", text)
        elif key == "weight" and role != "assistant":
            text = f"A message of role {role} has no weight."
            yield Finding("invalid_weight", f"{path}/{key}", text)
        elif key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            text = f"A message of role {role} has no field '{shown(key)}'{hint}"
            yield Finding("unknown_message_field", pointer(path, key), text)
    if not isinstance(message.get("name", ""), str):
        yield Finding("invalid_name", f"{path}/name", "The name is not a text.")


def _check_content(message: dict[str, Any], role: str, path: str) -> Iterator[Finding]:
    content = message.get("content")
    if content is None:
        calls = role == "assistant" and (message.get("tool_calls") or message.get("refusal"))
        if not calls:
            text = f"The message of role {role} has no content."
            yield Finding("content_required", f"{path}/content", text)
    elif isinstance(content, list):
        if not content:
            yield Finding("invalid_content", f"{path}/content", "The list of parts is empty.")
        for index, part in enumerate(content):
            yield from _check_part(part, role, f"{path}/content/{index}")
    elif not isinstance(content, str):
        text = "The content is neither a text nor a list of parts."
        yield Finding("invalid_content", f"{path}/content", text)


def _check_part(part: Any, role: str, path: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        if not isinstance(part.get("text"), str):
            yield Finding("invalid_content", f"{path}/text", "A text part needs a text.")
    elif kind == "image_url":
        image = part.get("image_url")
        if not isinstance(image, dict) or not isinstance(image.get("url"), str):
            text = 'An image part needs {"image_url": {"url": "..."}}.'
            yield Finding("invalid_content", f"{path}/image_url", text)
        if role != "user":
            text = f"A message of role {role} cannot hold an image."
            yield Finding("image_not_in_user", path, text)
    else:
        text = "A part must be an object of type text or image_url."
        yield Finding("invalid_content", f"{path}/type", text)


def _check_assistant(
    message: dict[str, Any], path: str, calls: ToolCalls, kind: Kind
) -> Iterator[Finding]:
    if "tool_calls" in message:
        yield from calls.check_calls(message["tool_calls"], f"{path}/tool_calls")
    weight = message.get("weight", 1)
    if isinstance(weight, bool) or weight not in (0, 1):
        yield Finding("invalid_weight", f"{path}/weight", "The weight is neither 0 nor 1.")
    elif "weight" in message and kind == "reinforcement":
        text = "Reinforcement training learns from no message of the file."
        yield Finding("unused_field", f"{path}/weight", text)
    if message.get("content") == "" and not message.get("tool_calls"):
        learns = kind != "reinforcement" and weight != 0
        text = "The assistant message is empty" + (" and is to be learnt." if learns else ".")
        rule = "empty_target" if learns else "empty_assistant"
        yield Finding(rule, f"{path}/content", text)


def _check_end(messages: list[dict[str, Any]], kind: Kind) -> Iterator[Finding]:
    last = messages[-1].get("role")
    path = f"/messages/{len(messages) - 1}"
    if last not in ROLES:
        return
    if kind == "reinforcement":
        if last != "user":
            text = f"The last message is of role {last}."
            yield Finding("last_message_not_user", f"{path}/role", text)
        return
    if last != "assistant":
        text = f"The last message is of role {last}."
        yield Finding("last_message_not_assistant", f"{path}/role", text)
    elif kind == "warm_start":
        yield from _check_target(messages[-1], path)
    elif all(m.get("weight", 1) == 0 for m in messages if m.get("role") == "assistant"):
        text = "Every assistant message has weight 0."
        yield Finding("nothing_to_learn", "/messages", text)


def _check_target(message: dict[str, Any], path: str) -> Iterator[Finding]:
    """Check the one message of a row that a warm start learns; its content is valid otherwise."""
    content = message.get("content")
    if message.get("weight", 1) == 0:
        text = "The last message has weight 0, and a warm start learns no other."
        yield Finding("nothing_to_learn", f"{path}/weight", text)
    elif message.get("tool_calls"):
        yield Finding("target_not_text", f"{path}/tool_calls", "The last message calls tools.")
    elif content is None and message.get("refusal"):
        yield Finding("target_not_text", f"{path}/content", "The last message has no text.")
    elif isinstance(content, list) and content and not any(map(_part_text, content)):
        text = "The text of the last message is empty and is to be learnt."
        yield Finding("empty_target", f"{path}/content", text)


def _part_text(part: Any) -> Any:
    return part.get("text") if isinstance(part, dict) else None
