"""A model server for the API's tests: vLLM's answers without a model, as an httpx transport."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


class ModelServer:
    """Answers chat requests and keeps what it was sent; set a field to make it fail."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        #: The answer to give instead, when set.
        self.answer: httpx.Response | None = None
        self.down = False
        #: Break the connection after the first chunk of a stream.
        self.breaks = False
        #: Stream until the reader goes away; `left` is set when it has.
        self.endless = False
        self.left = threading.Event()

    @property
    def transport(self) -> httpx.MockTransport:
        """The transport that the API's HTTP client gets."""
        return httpx.MockTransport(self._handle)

    @property
    def body(self) -> dict[str, Any]:
        """The last body that arrived."""
        body: dict[str, Any] = json.loads(self.requests[-1].content)
        return body

    @property
    def model_header(self) -> dict[str, Any]:
        """The last `x-rft-model` header that arrived."""
        header: dict[str, Any] = json.loads(self.requests[-1].headers["x-rft-model"])
        return header

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("connection refused", request=request)
        if request.url.path == "/health":
            return httpx.Response(200)
        self.requests.append(request)
        if self.answer is not None:
            return self.answer
        if self.body.get("stream"):
            return httpx.Response(200, stream=_Stream(self))
        return httpx.Response(200, json=_completion(self.body["model"]))


class _Stream(httpx.AsyncByteStream):
    def __init__(self, server: ModelServer) -> None:
        self.server, self.body = server, server.body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield _event(_chunk(self.body["model"], {"role": "assistant", "content": "Hel"}, None))
        while self.server.endless:
            yield _event(_chunk(self.body["model"], {"content": "x"}, None))
            await asyncio.sleep(0.01)
        if self.server.breaks:
            raise httpx.ReadError("connection reset")
        yield _event(_chunk(self.body["model"], {"content": "lo"}, "stop"))
        if (self.body.get("stream_options") or {}).get("include_usage"):
            yield _event({**_chunk(self.body["model"], {}, None), "choices": [], "usage": USAGE})
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        self.server.left.set()


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _completion(model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hello", "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": USAGE,
    }


def _chunk(model: str, delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
