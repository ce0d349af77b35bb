"""Rows and files that several tests use."""

import io
import json
from typing import Any

USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def call(**changes: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}} | changes


def calling(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str = "c") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


def talk(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def file_of(*rows: Any) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
