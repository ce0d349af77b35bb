"""Tools, calls and their results as text, for chat templates that know none of them.

The form is that of Hermes: tools as JSON in the system message, calls in `<tool_call>`, results in
`<tool_response>`. vLLM's parser of that name reads the calls back.
"""

import json
from typing import Any

_INTRODUCTION = (
    "You may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n"
    "<tools>\n{tools}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within"
    " <tool_call></tool_call> XML tags:\n"
    '<tool_call>\n{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)


def with_tools(messages: list[dict[str, Any]], tools: list[Any]) -> list[dict[str, Any]]:
    """Return the messages with the tools described in the system message."""
    listing = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    described = _INTRODUCTION.format(tools=listing)
    if messages and messages[0]["role"] == "system":
        system = f"{text_of(messages[0]['content'])}\n\n{described}"
        return [{**messages[0], "content": system}, *messages[1:]]
    return [{"role": "system", "content": described}, *messages]


def as_text(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message that holds calls or a result as one that holds text only."""
    if message["role"] == "tool":
        result = f"<tool_response>\n{text_of(message['content'])}\n</tool_response>"
        return {"role": "user", "content": result}
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = [_call(call["function"]) for call in calls]
    content = "\n".join(filter(None, [text_of(message.get("content")), *written]))
    return {"role": message["role"], "content": content}


def text_of(content: Any) -> str:
    """Return the text of a message's content, which may be null or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _call(function: dict[str, Any]) -> str:
    # The arguments are JSON already; parsed and written again they would change.
    name, arguments = json.dumps(function["name"]), function["arguments"] or "{}"
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
