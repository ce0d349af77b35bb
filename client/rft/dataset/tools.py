"""Rules about a row's `tools`, and about tool calls and their results."""

import json
import re
from collections.abc import Iterator
from typing import Any

from rft.dataset.report import Finding
from rft.dataset.strictjson import shown

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tools(tools: Any) -> Iterator[Finding]:
    """Check the `tools` of a row."""
    if not isinstance(tools, list):
        yield Finding("invalid_tools", "/tools", "The tools must be a list.")
        return
    for index, tool in enumerate(tools):
        path = f"/tools/{index}"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function":
            yield Finding("invalid_tools", path, "A tool needs type 'function' and a function.")
        elif not _is_name(function.get("name")):
            message = "A function needs a name of up to 64 letters, digits, _ or -."
            yield Finding("invalid_tools", f"{path}/function/name", message)
        elif not isinstance(function.get("parameters", {}), dict):
            message = "The parameters must be a JSON Schema object."
            yield Finding("invalid_tools", f"{path}/function/parameters", message)


def declared_names(tools: Any) -> set[str]:
    """The names of the functions that are declared as they should be."""
    if not isinstance(tools, list):
        return set()
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)]
    names = [f.get("name") for f in functions if isinstance(f, dict)]
    return {name for name in names if isinstance(name, str)}


class ToolCalls:
    """The calls of one conversation so far: a result must answer one of them."""

    def __init__(self, declared: set[str]) -> None:
        self._declared = declared
        self._ids: set[str] = set()

    def check_calls(self, calls: Any, path: str) -> Iterator[Finding]:
        """Check the `tool_calls` of an assistant message."""
        if not isinstance(calls, list) or not calls:
            message = "tool_calls must be a list with at least one call."
            yield Finding("invalid_tool_calls", path, message)
            return
        for index, call in enumerate(calls):
            yield from self._check_call(call, f"{path}/{index}")

    def _check_call(self, call: Any, path: str) -> Iterator[Finding]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            message = "A tool call needs type 'function' and a function."
            yield Finding("invalid_tool_calls", path, message)
            return
        if not isinstance(call.get("id"), str) or not call["id"]:
            yield Finding("invalid_tool_calls", f"{path}/id", "A tool call needs an id.")
        else:
            self._ids.add(call["id"])
        name = function.get("name")
        if not _is_name(name):
            yield Finding("invalid_tool_calls", f"{path}/function/name", "A call needs a name.")
        elif name not in self._declared:
            message = f"The function '{name}' is not among the row's tools."
            yield Finding("undeclared_tool", f"{path}/function/name", message)
        if not _is_json_object(function.get("arguments")):
            message = "The arguments must be a string that holds a JSON object."
            yield Finding("invalid_tool_calls", f"{path}/function/arguments", message)

    def check_result(self, message: dict[str, Any], path: str) -> Iterator[Finding]:
        """Check that a tool message answers a call."""
        answered = message.get("tool_call_id")
        if not isinstance(answered, str):
            text = "A tool message needs a tool_call_id."
            yield Finding("unknown_tool_call_id", path, text)
        elif answered not in self._ids:
            text = f"No earlier message calls a tool with the id '{shown(answered)}'."
            yield Finding("unknown_tool_call_id", f"{path}/tool_call_id", text)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _FUNCTION_NAME.fullmatch(value) is not None


def _is_json_object(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False
