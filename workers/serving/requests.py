"""From OpenAI's bodies to those that vLLM reads."""

from typing import Any

from core.errors import InvalidRequest
from workers.serving.dialect import Dialect
from workers.serving.tool_text import as_text, with_tools

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"

#: Leaves the likeliest token only, as zero does at OpenAI; vLLM refuses zero.
_SMALLEST_TOP_P = 1e-9
#: Below it the likeliest token is taken, without any choice.
_GREEDY_BELOW = 1e-5


def chat_body(body: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Return the body of a chat request in the form that suits the model.

    Raises:
        InvalidRequest: the model's own choice to call a tool could not be understood.
    """
    body = _with_allowed_tools(_with_plain_format(_sampling(body)))
    tools = body.get("tools") if body.get("tool_choice") != "none" else None
    if tools and body.get("tool_choice", "auto") == "auto" and dialect.parser is None:
        raise InvalidRequest(
            "How this model writes tool calls is not known; force a call with tool_choice"
            " 'required' or a function's name, or have the operator name its tool_parser in the"
            " list of models.",
            param="tools",
            code="tools_not_supported",
        )
    if tools and body.get("tool_choice", "auto") != "auto":
        body = {**body, "tools": [_strict(tool) for tool in tools]}
    messages = body.get("messages", [])
    if not dialect.knows_developer:
        messages = [_as_system(message) for message in messages]
    if not dialect.knows_tools:
        messages = [as_text(message) for message in messages]
        if tools:
            messages = with_tools(messages, tools)
    return {**body, "messages": messages}


def text_body(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a plain completion; `best_of` asks for more answers than are returned."""
    body = _sampling(body)
    best_of = body.pop("best_of", None)
    if best_of and best_of > body.get("n", 1):
        # The log-probabilities rank them.
        body |= {"n": best_of, "logprobs": body.get("logprobs", 0)}
    return body


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    """Return a copy whose values mean to vLLM what they mean to OpenAI."""
    body = dict(body)
    if body.get("top_p") == 0:
        body["top_p"] = _SMALLEST_TOP_P
    several = max(body.get("n") or 1, body.get("best_of") or 1) > 1
    if several and body.get("temperature", 1) < _GREEDY_BELOW:
        # vLLM refuses several answers then; one token to choose from comes to the same.
        body |= {"temperature": 1, "top_k": 1}
    if body.get("seed") is not None:
        # -1 is no seed to vLLM, and it adds numbers to the seeds of several answers.
        body["seed"] %= 2**62
    return body


def _as_system(message: dict[str, Any]) -> dict[str, Any]:
    # Most templates know the role by its older name only; the trainer renders it alike.
    return {**message, "role": "system"} if message.get("role") == "developer" else message


def _strict(tool: dict[str, Any]) -> dict[str, Any]:
    """Hold the arguments of a forced call to their schema, unless the caller says otherwise."""
    function = tool["function"]
    if function.get("strict") is not None:
        return tool
    return {**tool, "function": {**function, "strict": True}}


def _with_allowed_tools(body: dict[str, Any]) -> dict[str, Any]:
    """Narrow the tools down to those among which the model may choose."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return body
    allowed = choice["allowed_tools"]
    names = {tool["function"]["name"] for tool in allowed["tools"]}
    tools = [tool for tool in body["tools"] if tool["function"]["name"] in names]
    return {**body, "tools": tools, "tool_choice": allowed["mode"]}


def _with_plain_format(body: dict[str, Any]) -> dict[str, Any]:
    """A format without a schema means any JSON object."""
    given = body.get("response_format")
    if not given or given.get("type") != "json_schema":
        return body
    if given["json_schema"].get("schema") is not None:
        return body
    return {**body, "response_format": {"type": "json_object"}}
