"""Rules about a row of preferences: one prompt, a better answer and a worse one."""

from collections.abc import Iterator
from typing import Any

from rft.dataset.conversation import check_prompt_end, check_talk
from rft.dataset.messages import ROLES, check_message
from rft.dataset.nearest import nearest
from rft.dataset.parts import text_of
from rft.dataset.report import Finding
from rft.dataset.strictjson import pointer, shown
from rft.dataset.tools import KnownTools, ToolCalls

OUTPUTS = ("preferred_output", "non_preferred_output")

_FIELDS = ("input", *OUTPUTS)
_INPUT_FIELDS = ("messages", "tools", "parallel_tool_calls")
#: What other tools, and older versions of the format, call the fields.
_NAMES_ELSEWHERE = {
    "input": ("prompt", "messages"),
    "preferred_output": ("preferred_completion", "chosen"),
    "non_preferred_output": ("non_preferred_completion", "rejected"),
}


def check_preference(row: dict[str, Any], known: KnownTools) -> Iterator[Finding]:
    """Check one row of a preference dataset."""
    for key in row:
        if key not in _FIELDS and row[key] is not None:
            text = f"Preference training does not read the field '{shown(key)}'."
            yield Finding("unused_field", pointer("", key), text)
    yield from _check_input(row, known)
    for name in OUTPUTS:
        yield from _check_output(row, name)
    better, worse = (_said(row.get(name)) for name in OUTPUTS)
    if better and better == worse:
        text = "Both outputs say the same."
        yield Finding("outputs_equal", "/non_preferred_output", text)


def _check_input(row: dict[str, Any], known: KnownTools) -> Iterator[Finding]:
    given = row.get("input")
    if not isinstance(given, dict):
        yield Finding("input_required", "/input", _missing(row, "input", "an object"))
        return
    for key in given:
        if key not in _INPUT_FIELDS and given[key] is not None:
            near = nearest(key, _INPUT_FIELDS)
            hint = f"; did you mean {near}?" if near else "."
            text = f"The input has no field '{shown(key)}'{hint}"
            yield Finding("unused_field", pointer("/input", key), text)
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages:
        text = "The input has no list of messages."
        yield Finding("messages_required", "/input/messages", text)
        return
    yield from check_talk(given, "/input", "preference", known)
    last = messages[-1]
    if isinstance(last, dict) and last.get("role") in ROLES:
        yield from check_prompt_end(last, f"/input/messages/{len(messages) - 1}")


def _check_output(row: dict[str, Any], name: str) -> Iterator[Finding]:
    output = row.get(name)
    if not isinstance(output, list) or not output:
        text = _missing(row, name, "a list with one message")
        yield Finding("output_required", f"/{name}", text)
        return
    if len(output) > 1:
        text = f"The output has {len(output)} messages; it must be one."
        yield Finding("output_required", f"/{name}", text)
    message, path = output[0], f"/{name}/0"
    yield from check_message(message, path, ToolCalls(set()), "preference")
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        return
    content = message.get("content")
    if message["role"] != "assistant":
        text = f"The output is of role {message['role']}."
        yield Finding("output_not_assistant", f"{path}/role", text)
    elif message.get("tool_calls"):
        yield Finding("target_not_text", f"{path}/tool_calls", "The output calls tools.")
    elif content is None and message.get("refusal"):
        yield Finding("target_not_text", f"{path}/content", "The output has no text.")
    elif isinstance(content, (str, list)) and not text_of(content).strip():
        yield Finding("empty_target", f"{path}/content", "The output is blank.")


def _missing(row: dict[str, Any], name: str, wanted: str) -> str:
    if row.get(name) is not None:
        return f"The field {name} is not {wanted}."
    other = next((key for key in _NAMES_ELSEWHERE[name] if key in row), None)
    hint = f"; its field '{other}' is not read as such." if other else "."
    return f"The row has no {name}{hint}"


def _said(output: Any) -> str | None:
    first = output[0] if isinstance(output, list) and len(output) == 1 else None
    return text_of(first.get("content")) if isinstance(first, dict) else None
