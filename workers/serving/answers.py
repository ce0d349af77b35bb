"""What vLLM answers, under the public name of the model."""

import json
import re
from collections.abc import AsyncIterator
from itertools import groupby
from typing import Any

import httpx

from core.event_lines import event_lines
from workers.serving.requests import CHAT

_DATA, _DONE = "data: ", "data: [DONE]"

#: Words by which vLLM's refusals are known, and what it adds to them for its own programmers.
_TOO_LONG = "maximum context length"
_GRAMMAR = "Grammar error: "
_INTERNAL = re.compile(r" \(parameter=[^()]*\)$")


def without_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """Correct the usage of a prompt that was only echoed: vLLM counts a token that it drops."""
    prompt = answer["usage"]["prompt_tokens"]
    usage = {**answer["usage"], "completion_tokens": 0, "total_tokens": prompt}
    return {**answer, "usage": usage}


def named(answer: bytes, *, model: str, fingerprint: str) -> dict[str, Any]:
    """Return a JSON answer with the public name and the fingerprint of what gave it."""
    content: dict[str, Any] = json.loads(answer)
    return {**content, "model": model, "system_fingerprint": fingerprint}


async def named_events(
    response: httpx.Response, *, model: str, fingerprint: str
) -> AsyncIterator[bytes]:
    """Yield server-sent events as they come, named alike; a broken connection is a last event."""
    try:
        async for line in event_lines(response.aiter_bytes()):
            if line.startswith(_DATA) and line != _DONE:
                content = line.removeprefix(_DATA).encode()
                if b'"error"' not in content[:16]:
                    content = json.dumps(
                        named(content, model=model, fingerprint=fingerprint)
                    ).encode()
                yield _DATA.encode() + content + b"\n"
            else:
                yield line.encode() + b"\n"
    except httpx.TransportError:
        yield f"{_DATA}{json.dumps(_BROKEN)}\n\n".encode()


_BROKEN = {
    "error": {
        "message": "The model server ended in the middle of the answer; try again.",
        "type": "server_error",
        "param": None,
        "code": "engine_failed",
    }
}


def refusal(answer: bytes, path: str, *, for_tools: bool = False) -> bytes:
    """Return vLLM's refusal of a request in OpenAI's form, with its code where there is one.

    `for_tools` says whether a JSON Schema that was refused is that of a forced call.
    """
    content = json.loads(answer)
    error = content.get("error")
    if not isinstance(error, dict):
        return answer
    is_chat = path == CHAT
    message = _INTERNAL.sub("", str(error.get("message")))
    code, param = None, error.get("param")
    if _TOO_LONG in message:
        code, param = "context_length_exceeded", "messages" if is_chat else "prompt"
    elif message.startswith("max_tokens="):
        limit = re.search(r"max_model_len=(\d+)", message)
        message = (
            "The answer may not be longer than the model's context"
            + (f" of {limit[1]} tokens" if limit else "")
            + "; ask for fewer tokens."
        )
        code, param = "context_length_exceeded", "max_completion_tokens" if is_chat else param
    elif message.startswith(_GRAMMAR):
        said = message.removeprefix(_GRAMMAR).rstrip(".")
        message = f"The JSON Schema cannot guide the model: {said}; leave that out."
        param = "tools" if for_tools else "response_format"
    told = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return json.dumps({"error": told}).encode()


def best(answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Keep, of each prompt's `best_of` answers, the `n` that are likeliest by token."""
    n, best_of = body.get("n", 1), body["best_of"]
    if best_of <= n:
        return answer
    in_order = sorted(answer["choices"], key=lambda choice: choice["index"])
    kept: list[dict[str, Any]] = []
    for _, candidates in groupby(in_order, key=lambda choice: choice["index"] // best_of):
        kept += sorted(candidates, key=_mean_logprob, reverse=True)[:n]
    # They were needed for the choice, whether or not somebody asked for them.
    hidden = {} if "logprobs" in body else {"logprobs": None}
    choices = [{**choice, "index": index, **hidden} for index, choice in enumerate(kept)]
    return {**answer, "choices": choices}


def _mean_logprob(choice: dict[str, Any]) -> float:
    logprobs: list[float] = choice["logprobs"]["token_logprobs"]
    return sum(logprobs) / max(1, len(logprobs))
