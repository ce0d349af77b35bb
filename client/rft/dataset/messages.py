"""Rules about one message of a conversation."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from rft.dataset.nearest import nearest
from rft.dataset.parts import check_content, is_blank
from rft.dataset.report import Finding
from rft.dataset.strictjson import pointer, shown
from rft.dataset.tools import ToolCalls

Kind: TypeAlias = Literal["reinforcement", "supervised", "warm_start", "preference"]

ROLES = ("developer", "system", "user", "assistant", "tool")

#: Those whose messages need no third field.
_PLAIN_ROLES = frozenset(("developer", "system", "user", "assistant"))

_COMMON_FIELDS = ("role", "content", "name")
_OWN_FIELDS = {
    "assistant": ("tool_calls", "refusal", "weight"),
    "tool": ("tool_call_id",),
}
#: What other tools call the roles.
_ROLES_ELSEWHERE = {
    "human": "user",
    "prompter": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "ipython": "tool",
}


def check_message(message: Any, path: str, calls: ToolCalls, kind: Kind) -> Iterator[Finding]:
    """Check one message after the others, whose tool calls are in `calls`."""
    if not isinstance(message, dict):
        yield Finding("message_not_object", path, "The message is not an object.")
        return
    role = message.get("role")
    if role not in ROLES:
        yield Finding("unknown_role", f"{path}/role", _unknown_role(role))
        return
    yield from _check_fields(message, role, path)
    yield from check_content(message, role, path)
    if role == "assistant":
        yield from _check_assistant(message, path, calls, kind)
    if role == "tool":
        yield from calls.check_result(message, path)


def is_plain(message: Any) -> bool:
    """Whether a message is nothing but a role and a text, so that `check_message` is silent.

    A blank text is worth a word in some places and therefore not plain.
    """
    if type(message) is not dict or len(message) != 2:
        return False
    role, content = message.get("role"), message.get("content")
    if type(content) is not str or not content or content.isspace():
        return False
    return type(role) is str and role in _PLAIN_ROLES


def weight_of(message: dict[str, Any]) -> Any:
    """The weight of a message, 1 when it has none; null counts as none."""
    weight = message.get("weight")
    return 1 if weight is None else weight


def _unknown_role(role: Any) -> str:
    if role is None:
        return "The role is missing."
    if not isinstance(role, str):
        return f"The role {shown(repr(role))} is not known."
    near = _ROLES_ELSEWHERE.get(role.strip().casefold()) or nearest(role.strip(), ROLES)
    hint = f"; did you mean {near}?" if near else "."
    return f"The role {shown(repr(role))} is not known{hint}"


def _check_fields(message: dict[str, Any], role: str, path: str) -> Iterator[Finding]:
    known = _COMMON_FIELDS + _OWN_FIELDS.get(role, ())
    for key, value in message.items():
        # Typed clients write every field that they know, as null when it is not given.
        if key in known or value is None:
            continue
        if key == "function_call":
            text = "function_call is the older form of tool_calls, and nothing reads it."
            yield Finding("invalid_tool_calls", f"{path}/{key}", text)
        elif key == "tool_calls":
            text = f"A message of role {role} cannot call tools."
            yield Finding("invalid_tool_calls", f"{path}/{key}", text)
        elif key == "weight":
            text = f"A message of role {role} has no weight."
            yield Finding("invalid_weight", f"{path}/{key}", text)
        else:
            near = nearest(key, known)
            hint = f"; did you mean {near}?" if near else "."
            text = f"A message of role {role} has no field '{shown(key)}'{hint}"
            yield Finding("unknown_message_field", pointer(path, key), text)
    for key in ("name", "refusal"):
        if key in known and not isinstance(message.get(key), str | None):
            rule = "invalid_name" if key == "name" else "invalid_content"
            yield Finding(rule, f"{path}/{key}", f"The {key} is not a text.")


def _check_assistant(
    message: dict[str, Any], path: str, calls: ToolCalls, kind: Kind
) -> Iterator[Finding]:
    if message.get("tool_calls") is not None:
        yield from calls.check_calls(message["tool_calls"], f"{path}/tool_calls")
    weight = weight_of(message)
    learns = kind in ("supervised", "warm_start")
    if isinstance(weight, bool) or weight not in (0, 1):
        yield Finding("invalid_weight", f"{path}/weight", "The weight is neither 0 nor 1.")
    elif message.get("weight") is not None and not learns:
        text = f"{kind.capitalize()} training reads no weights."
        yield Finding("unused_field", f"{path}/weight", text)
    if is_blank(message.get("content")) and not message.get("tool_calls"):
        to_learn = kind == "supervised" and weight != 0
        text = "The assistant message is empty" + (" and is to be learnt." if to_learn else ".")
        rule = "empty_target" if to_learn else "empty_assistant"
        yield Finding(rule, f"{path}/content", text)
