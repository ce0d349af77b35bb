"""The API's side of the model-serving service: which weights, one request, one streamed reply."""

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx

from api.errors import Unavailable
from api.services import answers
from api.services.answers import Form
from core.errors import InvalidRequest
from core.event_lines import event_lines

logger = logging.getLogger(__name__)

#: Seconds to reach the service, and seconds without a byte from it: loading a model that nobody
#: used for a while is silent. The second is the official client's own patience.
CONNECT_S, READ_S = 5.0, 600.0
#: No request waits for another's connection: long answers would keep everybody else from any.
#: Idle ones are given up sooner than the service does, after 5 s: one must not be used while it is
#: being closed.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=2.0)


@dataclass(frozen=True)
class Target:
    """What a public model name stands for.

    `artifact` is the object prefix of the trained weights, None for a base model; `kind` is
    "adapter" or "full".
    """

    name: str
    base: str
    artifact: str | None = None
    kind: str | None = None

    def header(self) -> str:
        """Return the value of the `x-rft-model` header."""
        return json.dumps({"base": self.base, "artifact": self.artifact, "kind": self.kind})


class Serving:
    """A client of the serving service. Close it with `aclose`."""

    def __init__(
        self, url: str, *, token: str | None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"x-rft-token": token} if token else {},
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            limits=LIMITS,
            transport=transport,
        )

    async def complete(self, form: Form, body: dict[str, Any], target: Target) -> bytes:
        """Return the JSON answer to a request, in OpenAI's form.

        Raises `InvalidRequest` when the model server refuses the request, and `Unavailable` when
        it cannot be reached or fails.
        """
        response = await self._open(form, body, target)
        try:
            return answers.whole(form, await response.aread())
        except httpx.TransportError as error:
            raise _unreachable(target, error) from error
        finally:
            await response.aclose()

    async def stream(self, form: Form, body: dict[str, Any], target: Target) -> "Relay":
        """Return the server-sent events of a request; raises like `complete`."""
        usage = bool(body.get("stream_options", {}).get("include_usage"))
        return Relay(await self._open(form, body, target), target, form, usage=usage)

    async def _open(self, form: Form, body: dict[str, Any], target: Target) -> httpx.Response:
        request = self._client.build_request(
            "POST", form.path, json=body, headers={"x-rft-model": target.header()}
        )
        try:
            response = await self._client.send(request, stream=True)
            if response.status_code != httpx.codes.OK:
                await response.aread()
        except httpx.TransportError as error:
            raise _unreachable(target, error) from error
        if response.status_code != httpx.codes.OK:
            raise _refusal(response, target)
        return response

    async def is_up(self) -> bool:
        """Return whether the service answers at all."""
        try:
            await self._client.get("/health", timeout=CONNECT_S)
        except httpx.TransportError:
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class Relay:
    """The events of one answer, as they come; closing it ends the generation behind it.

    A failure of the model server is sent as a last event with OpenAI's error object.
    """

    def __init__(
        self, response: httpx.Response, target: Target, form: Form, *, usage: bool
    ) -> None:
        self._response, self._target = response, target
        self._form, self._usage = form, usage

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for line in event_lines(self._response.aiter_bytes()):
                event = answers.event(self._form, line, usage=self._usage)
                if event is not None:
                    yield f"{event}\n\n".encode()
        except httpx.TransportError as error:
            yield f"{answers.failure(_unreachable(self._target, error))}\n\n".encode()

    async def aclose(self) -> None:
        """Close the connection to the model server."""
        await self._response.aclose()


def _unreachable(target: Target, error: httpx.TransportError) -> Unavailable:
    """Build the error for a model server that gives no answer, or stops in the middle of one."""
    logger.error("serving %s: %r", target.name, error)
    return Unavailable(
        "The model server does not answer; stored models are not affected. Try again in a minute,"
        " and if it stays, have the operator run `rft-server doctor`.",
        code="serving_unreachable",
    )


def _refusal(response: httpx.Response, target: Target) -> InvalidRequest | Unavailable:
    """Translate an error answer; only what the model server says of the *request* is passed on."""
    error = _error_object(response)
    message = error.get("message")
    if response.status_code in (400, 422) and isinstance(message, str):
        param, code = error.get("param"), error.get("code")
        return InvalidRequest(
            message,
            param=param if isinstance(param, str) else None,
            code=code if isinstance(code, str) else None,
        )
    logger.error("serving %s: HTTP %s %s", target.name, response.status_code, response.text[:2000])
    return Unavailable(
        f"The model server could not serve '{target.name}' (HTTP {response.status_code}). Try"
        " again in a minute, and if it stays, have the operator read its log.",
        code="serving_failed",
    )


def _error_object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}
