"""A model server for the API's tests: vLLM's answers without a model, as an httpx transport."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": None, "created_cache_tokens": 0},
    "completion_tokens_details": None,
}
#: What vLLM adds to every choice and answer, to OpenAI's clients' surprise.
CHOICE_EXTRAS = {"stop_reason": None, "token_ids": None, "routed_experts": None}
EXTRAS = {"prompt_logprobs": None, "kv_transfer_params": None, "metrics": None}


class ModelServer:
    """Answers chat requests and keeps what it was sent; set a field to make it fail."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        #: The answer to give instead, when set.
        self.answer: httpx.Response | None = None
        #: What the model says.
        self.message: dict[str, Any] = {
            "role": "assistant",
            "content": "Hello",
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        }
        self.down = False
        #: Report the engine's death after the first chunk of a stream.
        self.dies = False
        #: Break the connection after the first chunk of a stream.
        self.breaks = False
        #: Stream until the reader goes away; `left` is set when it has.
        self.endless = False
        self.left = threading.Event()
        #: Give no answer at all until the reader goes away.
        self.hangs = False
        #: What a model, known by its `x-rft-model` header, gives for the token at a place of an
        #: echoed prompt; None answers without log-probabilities.
        self.logprob: Callable[[dict[str, Any], int], float] | None = None

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
            return httpx.Response(200, json={"status": "ok", "engine": "vllm-fake 1.2.3"})
        self.requests.append(request)
        if self.hangs:
            await self._hang()
        if self.answer is not None:
            return self.answer
        if self.body.get("stream"):
            return httpx.Response(200, stream=_Stream(self, request.url.path))
        return httpx.Response(200, json=self._whole(request.url.path))

    async def _hang(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()

    def _whole(self, path: str) -> dict[str, Any]:
        count = self.body.get("n", 1)
        return {
            **_head(path, self.body["model"], chunk=False),
            **EXTRAS,
            "service_tier": None,
            "usage": USAGE,
            "choices": [
                {**_choice(path, index, self.message), **self._echoed()} for index in range(count)
            ],
        }

    def _echoed(self) -> dict[str, Any]:
        """The log-probabilities of a prompt that is given back, with one token after it."""
        if self.logprob is None or not self.body.get("echo"):
            return {}
        places = range(1, len(self.body["prompt"]) + 1)
        values = [None, *(self.logprob(self.model_header, place) for place in places)]
        return {"logprobs": {"token_logprobs": values}}


class _Stream(httpx.AsyncByteStream):
    def __init__(self, server: ModelServer, path: str) -> None:
        self.server, self.body, self.path = server, server.body, path

    def _event(self, delta: dict[str, Any], finish_reason: str | None) -> bytes:
        content: dict[str, Any] = {"delta": delta}
        if "chat" not in self.path:
            content = {"text": delta["content"]}
        choice = {"index": 0, "finish_reason": finish_reason, **content, "logprobs": None}
        head = _head(self.path, self.body["model"], chunk=True)
        return _event({**head, "choices": [{**choice, **CHOICE_EXTRAS}]})

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._event({"role": "assistant", "content": "Hel"}, None)
        while self.server.endless:
            yield self._event({"content": "x"}, None)
            await asyncio.sleep(0.01)
        if self.server.breaks:
            raise httpx.ReadError("connection reset")
        if self.server.dies:
            yield _event({"error": {"message": "EngineCore died: secret", "code": 500}})
            return
        yield self._event({"content": "lo"}, "stop")
        if (self.body.get("stream_options") or {}).get("include_usage"):
            head = _head(self.path, self.body["model"], chunk=True)
            yield _event({**head, "choices": [], "usage": USAGE})
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        self.server.left.set()


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _head(path: str, model: str, *, chunk: bool) -> dict[str, Any]:
    if "chat" not in path:
        kind = "text_completion"
    else:
        kind = "chat.completion.chunk" if chunk else "chat.completion"
    head = {"id": "cmpl-1", "object": kind, "created": 1, "model": model}
    return {**head, "system_fingerprint": "fp_0123456789"}


def _choice(path: str, index: int, message: dict[str, Any]) -> dict[str, Any]:
    about = {"index": index, "logprobs": None, **CHOICE_EXTRAS}
    if "chat" not in path:
        return {**about, "text": message["content"], "finish_reason": "stop"}
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    return {**about, "message": message, "finish_reason": finish}
