"""Rules about a row's `tools`, and about tool calls and their results."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from rft.dataset.quickjson import count_strings
from rft.dataset.report import Finding
from rft.dataset.strictjson import shown

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tools(tools: Any, path: str) -> Iterator[Finding]:
    """Check the `tools` at `path`."""
    if not isinstance(tools, list):
        yield Finding("invalid_tools", path, "The tools must be a list.")
        return
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        yield from _check_tool(tool, f"{path}/{index}", seen)


def _check_tool(tool: Any, path: str, seen: set[str]) -> Iterator[Finding]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type") != "function":
        yield Finding("invalid_tools", path, "A tool needs type 'function' and a function.")
        return
    name = function.get("name")
    if not _is_name(name):
        message = "A function needs a name of up to 64 letters, digits, _ or -."
        yield Finding("invalid_tools", f"{path}/function/name", message)
    elif name in seen:
        message = f"Two functions are called '{name}'."
        yield Finding("invalid_tools", f"{path}/function/name", message)
    else:
        seen.add(name)
    parameters = function.get("parameters")
    schema_type = parameters.get("type", "object") if isinstance(parameters, dict) else None
    if parameters is not None and schema_type != "object":
        message = "The parameters must be a JSON Schema of type object."
        yield Finding("invalid_tools", f"{path}/function/parameters", message)
    if not isinstance(function.get("description"), str | None):
        message = "The description is not a text."
        yield Finding("invalid_tools", f"{path}/function/description", message)


class KnownTools:
    """Remembers what was found about the last tools: rows of a file mostly share them."""

    def __init__(self) -> None:
        self._tools: Any = None
        self._path = ""
        self._findings: list[Finding] = []
        self._names: set[str] = set()
        self._strings: int | None = None

    def look(self, tools: Any, path: str) -> tuple[list[Finding], set[str]]:
        """The findings about these tools, and the names that they declare."""
        self._see(tools, path)
        return self._findings, self._names

    def right(self, tools: Any, path: str) -> bool:
        """Whether there is no finding about these tools."""
        self._see(tools, path)
        return not self._findings

    def declares(self, tools: Any, path: str, name: str) -> bool:
        """Whether these tools are right and declare a function of this name."""
        self._see(tools, path)
        return not self._findings and name in self._names

    def strings(self, tools: Any, path: str) -> int:
        """The strings in these tools; raises like `quickjson.count_strings`."""
        self._see(tools, path)
        if self._strings is None:
            # They stand in a row, which is a level of its own.
            self._strings = count_strings([tools], 1)
        return self._strings

    def _see(self, tools: Any, path: str) -> None:
        if tools is self._tools and path == self._path:
            return
        if tools != self._tools or path != self._path:
            self._findings = [] if tools is None else list(check_tools(tools, path))
            self._names = declared_names(tools)
            self._strings = None
        self._tools, self._path = tools, path


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
        # The calls of the last message that called, as long as no result answers them.
        self._open: dict[str, str] = {}
        self._unanswered: list[Finding] = []

    def check_calls(self, calls: Any, path: str) -> Iterator[Finding]:
        """Check the `tool_calls` of an assistant message."""
        if not isinstance(calls, list) or not calls:
            message = "tool_calls must be a list with at least one call."
            yield Finding("invalid_tool_calls", path, message)
            return
        self._give_up()
        for index, call in enumerate(calls):
            yield from self._check_call(call, f"{path}/{index}")

    def _check_call(self, call: Any, path: str) -> Iterator[Finding]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            message = "A tool call needs type 'function' and a function."
            yield Finding("invalid_tool_calls", path, message)
            return
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id:
            yield Finding("invalid_tool_calls", f"{path}/id", "A tool call needs an id.")
        elif call_id in self._open:
            message = f"Two calls of the message have the id '{shown(call_id)}'."
            yield Finding("invalid_tool_calls", f"{path}/id", message)
        else:
            self._ids.add(call_id)
            self._open[call_id] = path
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
        else:
            self._open.pop(answered, None)

    def check_unanswered(self, *, called_last: bool) -> Iterator[Finding]:
        """Report the calls without a result; the last message's own may stay open."""
        if not called_last:
            self._give_up()
        yield from self._unanswered

    def _give_up(self) -> None:
        for call_id, path in self._open.items():
            message = f"No tool message answers the call '{shown(call_id)}'."
            self._unanswered.append(Finding("unanswered_tool_call", path, message))
        self._open.clear()


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and _FUNCTION_NAME.fullmatch(value) is not None


def _is_json_object(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False
