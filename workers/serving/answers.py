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
_ASKED_TOO_MUCH = re.compile(r"(max_(?:completion_)?tokens)=\d+ .*max_model_len=(\d+)")
_GRAMMAR = re.compile(r"Grammar error: (.*?)\.?$")
_NO_GRAMMAR = "Invalid grammar specification"
_TEXT_ONLY = "is not a multimodal model"
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
    response: httpx.Response, *, model: str, fingerprint: str, only_prompt: bool = False
) -> AsyncIterator[bytes]:
    """Yield server-sent events as they come, named alike; a broken connection is a last event.

    `only_prompt` says that nothing but the prompt is given back: see `without_answer`.
    """
    try:
        async for line in event_lines(response.aiter_bytes()):
            if line.startswith(_DATA) and line != _DONE:
                content = line.removeprefix(_DATA).encode()
                if b'"error"' not in content[:16]:
                    chunk = named(content, model=model, fingerprint=fingerprint)
                    if only_prompt and chunk.get("usage"):
                        chunk = without_answer(chunk)
                    content = json.dumps(chunk).encode()
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
    said = " ".join(_INTERNAL.sub("", str(error.get("message"))).split())
    prompt, schema = "messages" if path == CHAT else "prompt", "response_format"
    told = _told(said, prompt=prompt, schema="tools" if for_tools else schema)
    message, param, code = told or (said, error.get("param"), None)
    body = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return json.dumps({"error": body}).encode()


def _told(said: str, *, prompt: str, schema: str) -> tuple[str, str, str | None] | None:
    """Return sentence, parameter and code for what vLLM says in words of its own, else None."""
    if _TOO_LONG in said:
        return said, prompt, "context_length_exceeded"
    if asked := _ASKED_TOO_MUCH.match(said):
        message = (
            f"The answer may not be longer than the model's context of {asked[2]} tokens; ask for"
            " fewer tokens."
        )
        return message, asked[1], "context_length_exceeded"
    if found := _GRAMMAR.match(said):
        message = f"The JSON Schema cannot guide the model: {found[1]}; leave that out."
        return message, schema, None
    if said.startswith(_NO_GRAMMAR):
        message = f"A JSON Schema in '{schema}' cannot guide the model; check its types and words."
        return message, schema, None
    if _TEXT_ONLY in said:
        return "This model reads text only; leave the images out.", prompt, None
    return None


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
