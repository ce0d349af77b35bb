"""Pass one chat request to a model server and its answer back, under the public model name."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

_DATA = "data: "


async def send(client: httpx.AsyncClient, body: dict[str, Any], *, model: str) -> httpx.Response:
    """Send the body with the server's own name for the model; return the open response."""
    request = client.build_request("POST", "/v1/chat/completions", json={**body, "model": model})
    return await client.send(request, stream=True)


def renamed(answer: bytes, name: str) -> bytes:
    """Return a JSON answer with the public name in its `model` field, if it has one."""
    content = json.loads(answer)
    if "model" in content:
        content["model"] = name
    return json.dumps(content).encode()


async def renamed_events(response: httpx.Response, name: str) -> AsyncIterator[bytes]:
    """Yield server-sent events as they come, each chunk's `model` field renamed."""
    async for line in response.aiter_lines():
        if line.startswith(_DATA) and line != f"{_DATA}[DONE]":
            payload = renamed(line.removeprefix(_DATA).encode(), name)
            yield _DATA.encode() + payload + b"\n"
        else:
            yield line.encode() + b"\n"
