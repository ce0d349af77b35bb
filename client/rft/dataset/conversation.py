"""Rules about a row: its messages together, how they must end, and its other fields."""

from collections.abc import Iterator
from typing import Any

from rft.dataset.images import MAX_IMAGES
from rft.dataset.messages import ROLES, Kind, check_message, is_plain, weight_of
from rft.dataset.nearest import nearest
from rft.dataset.parts import is_blank, is_image, text_of
from rft.dataset.report import Finding
from rft.dataset.strictjson import pointer, shown
from rft.dataset.tools import KnownTools, ToolCalls

_READ_IN_SUPERVISED = ("messages", "tools")

#: Fields of a row that mean something else than they seem to, and what they mean.
MISLEADING = {
    "item": "A grader reads it as item.item.",
    "sample": "A grader reads it as item.sample; sample itself is what the model wrote.",
    "functions": "It is the older form of tools, and the model is not told of it.",
    "function_call": "The model is not told of it; completions call what they choose to.",
    "tool_choice": "The model is not told of it; completions call what they choose to.",
    "response_format": "It belongs into the job's method, not into a row.",
}


def check_row(row: dict[str, Any], kind: Kind, known: KnownTools) -> Iterator[Finding]:
    """Check one row of a dataset of this kind, but for preference, which has its own rules."""
    yield from _check_fields(row, kind)
    messages = row.get("messages")
    if isinstance(messages, list) and messages:
        yield from check_talk(row, "", kind, known)
        if all(isinstance(message, dict) for message in messages):
            yield from _check_start(messages, kind)
            yield from _check_end(messages, kind)
        return
    yield from known.look(row.get("tools"), "/tools")[0]
    yield Finding("messages_required", "/messages", _no_messages(row, messages))


def check_talk(
    holder: dict[str, Any], path: str, kind: Kind, known: KnownTools
) -> Iterator[Finding]:
    """Check `tools` and `messages` of what holds them; the messages are a list with some in it."""
    found, names = known.look(holder.get("tools"), f"{path}/tools")
    yield from found
    messages = holder["messages"]
    calls, images = ToolCalls(names), 0
    for index, message in enumerate(messages):
        if not is_plain(message):
            yield from check_message(message, f"{path}/messages/{index}", calls, kind)
            images += _images(message)
    last = messages[-1]
    called_last = isinstance(last, dict) and last.get("tool_calls") is not None
    yield from calls.check_unanswered(called_last=called_last)
    if images > MAX_IMAGES:
        text = f"The row has {images} images; {MAX_IMAGES} are allowed."
        yield Finding("too_many_images", f"{path}/messages", text)


def needs_of(row: dict[str, Any]) -> list[str]:
    """What a model must be able to do for this row: "tools", "image"."""
    given = row.get("input")
    holder = given if isinstance(given, dict) and "messages" not in row else row
    tools, image = bool(holder.get("tools")), False
    messages = holder.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            tools = tools or bool(message.get("tool_calls"))
            image = image or _images(message) > 0
    return [need for need, there in (("tools", tools), ("image", image)) if there]


def _images(message: Any) -> int:
    content = message.get("content") if isinstance(message, dict) else None
    return sum(map(is_image, content)) if isinstance(content, list) else 0


def _no_messages(row: dict[str, Any], messages: Any) -> str:
    if messages is not None:
        return "No message is there." if messages == [] else "The messages are not a list."
    elsewhere = [key for key in ("conversations", "conversation", "prompt") if key in row]
    near = nearest("messages", row) or next(iter(elsewhere), None)
    hint = f"; its field '{shown(near)}' is not read as such." if near else "."
    return f"The row has no list of messages{hint}"


def _check_fields(row: dict[str, Any], kind: Kind) -> Iterator[Finding]:
    for key in row:
        if kind == "supervised":
            if key not in _READ_IN_SUPERVISED and row[key] is not None:
                text = "Supervised training reads messages and tools only."
                yield Finding("unused_field", pointer("", key), text)
        elif key in MISLEADING:
            text = f"The field '{shown(key)}' is data like any other. {MISLEADING[key]}"
            yield Finding("misleading_field", pointer("", key), text)


def _check_start(messages: list[dict[str, Any]], kind: Kind) -> Iterator[Finding]:
    """Check that something stands before each answer that is learnt."""
    first = messages[0]
    learnt = {"supervised": weight_of(first) != 0, "warm_start": len(messages) == 1}
    if first.get("role") == "assistant" and learnt.get(kind):
        text = "Nothing stands before this answer, which is to be learnt."
        yield Finding("answer_without_prompt", "/messages/0", text)


def _check_end(messages: list[dict[str, Any]], kind: Kind) -> Iterator[Finding]:
    last = messages[-1].get("role")
    path = f"/messages/{len(messages) - 1}"
    if last not in ROLES:
        return
    if kind == "reinforcement":
        yield from check_prompt_end(messages[-1], path)
        return
    if last != "assistant":
        text = f"The last message is of role {last}."
        yield Finding("last_message_not_assistant", f"{path}/role", text)
    elif kind == "warm_start":
        yield from _check_target(messages[-1], path)
    elif all(weight_of(m) == 0 for m in messages if m.get("role") == "assistant"):
        text = "Every assistant message has weight 0."
        yield Finding("nothing_to_learn", "/messages", text)


def check_prompt_end(last: dict[str, Any], path: str) -> Iterator[Finding]:
    """Check the message after which the model speaks; it has a known role."""
    role, content = last.get("role"), last.get("content")
    if role != "user":
        text = f"The last message is of role {role}."
        yield Finding("last_message_not_user", f"{path}/role", text)
    elif is_blank(content):
        yield Finding("empty_prompt", f"{path}/content", "The user's last message is blank.")


def _check_target(message: dict[str, Any], path: str) -> Iterator[Finding]:
    """Check the one message of a row that a warm start learns; its content is valid otherwise."""
    content = message.get("content")
    if weight_of(message) == 0:
        text = "The last message has weight 0, and a warm start learns no other."
        yield Finding("nothing_to_learn", f"{path}/weight", text)
    elif message.get("tool_calls"):
        yield Finding("target_not_text", f"{path}/tool_calls", "The last message calls tools.")
    elif content is None and message.get("refusal"):
        yield Finding("target_not_text", f"{path}/content", "The last message has no text.")
    elif is_blank(content) or (isinstance(content, list) and content and not text_of(content)):
        text = "The text of the last message is empty and is to be learnt."
        yield Finding("empty_target", f"{path}/content", text)
