"""Sending one request: through the gates, within time and size, again where that may help."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import httpcore
import httpx

from graders.http.connections import Connections, Key
from graders.http.errors import OutboundError, TooLarge, Unavailable
from graders.http.gate import Gate
from graders.http.policy import Policy, port_of
from graders.http.retry import Retry, is_transient, retry_after_s

_OWN_HEADERS = (("Accept", "application/json"), ("Accept-Encoding", "identity"))


class TryAgain(Exception):
    """Raised by a caller's check: the answer is a failure of infrastructure in disguise."""


@dataclass(frozen=True)
class Target:
    """Where requests go and what bounds them.

    `trusted` is for URLs that the operator wrote: they may lie inside the network and be plain
    http. `headers` may hold secrets; they appear in no message. `timeout_s` is for one try.
    """

    url: httpx.URL
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 60.0
    max_bytes: int = 1_000_000
    trusted: bool = False

    @property
    def host(self) -> str:
        """What messages call it."""
        return self.url.netloc.decode("ascii")


@dataclass(frozen=True)
class Answer:
    """A whole answer with a status that is no failure of infrastructure; may well be 4xx."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: int


@dataclass(frozen=True)
class _Trouble:
    """Why one try failed, and how long the host asks to wait."""

    reason: str
    after_s: float | None = None
    timed_out: bool = False
    status: int | None = None


class Outbound:
    """The client; one per process is enough. Use it from one event loop."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._connections = Connections()
        self._gates: dict[str, Gate] = {}

    def gate(self, target: Target, *, concurrency: int, per_second: float) -> Gate:
        """The gate of the target's host, which all that go there share; the first one sets it."""
        gate = Gate(concurrency=concurrency, per_second=per_second)
        return self._gates.setdefault(target.host, gate)

    async def post(
        self,
        target: Target,
        body: bytes,
        *,
        retry: Retry,
        gates: Sequence[Gate] = (),
        check: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Send a JSON body and return the answer; redirects are answers like any other.

        `check` may raise `TryAgain`. Raises `Refused`, `TooLarge` or `Unavailable`.
        """
        trusted = target.trusted or self.policy.allows(target.url)
        if not trusted:
            self.policy.check(target.url)
        left_s, attempt = retry.budget_s, 0
        while True:
            attempt += 1
            async with AsyncExitStack() as passed:
                for gate in gates:
                    await passed.enter_async_context(gate.passage())
                started = time.monotonic()
                result = await self._try(target, body, attempt, left_s, trusted=trusted)
            left_s -= time.monotonic() - started
            if isinstance(result, Answer):
                result = _checked(result, check)
            if isinstance(result, Answer):
                return result
            wait_s = (result.after_s or 0.0) + retry.wait_s(attempt)
            if attempt >= retry.attempts or wait_s >= left_s:
                raise _given_up(target, result, attempt)
            if result.after_s:
                for gate in gates:
                    gate.hold(result.after_s)
            await asyncio.sleep(wait_s)
            left_s -= wait_s

    async def close(self) -> None:
        """Close the idle connections."""
        await self._connections.close()

    async def _try(
        self, target: Target, body: bytes, attempt: int, left_s: float, *, trusted: bool
    ) -> Answer | _Trouble:
        limit_s = min(target.timeout_s, left_s)
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._exchange(target, body, attempt, trusted=trusted)
        except TimeoutError:
            return _Trouble(f"no answer within {limit_s:.3g} s", timed_out=True)
        except httpcore.ConnectError as error:
            return _Trouble(f"no connection ({error})" if str(error) else "no connection")
        except (httpcore.NetworkError, httpcore.TimeoutException):
            return _Trouble("the connection broke")
        except httpcore.LocalProtocolError:
            # Its text quotes the header, which may hold a secret.
            return _Trouble("a header of the request cannot be sent")
        except httpcore.ProtocolError as error:
            return _Trouble(f"the answer is no proper HTTP ({error})")
        if is_transient(answer.status):
            after_s = retry_after_s(answer.headers.get("retry-after"))
            asked = f" and the wish to wait {after_s:.3g} s" if after_s else ""
            return _Trouble(f"status {answer.status}{asked}", after_s, status=answer.status)
        return answer

    async def _exchange(
        self, target: Target, body: bytes, attempt: int, *, trusted: bool
    ) -> Answer:
        url = target.url
        key = Key(url.raw_scheme, url.raw_host, port_of(url), trusted)
        connection = self._connections.take(key)
        headers = {
            "Host": target.host,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **dict(_OWN_HEADERS),
            **target.headers,
        }
        request = httpcore.Request(
            "POST",
            httpcore.URL(scheme=key.scheme, host=key.host, port=key.port, target=url.raw_path),
            headers=list(headers.items()),
            content=body,
        )
        try:
            response = await connection.handle_async_request(request)
            try:
                content = await _read(response, target, attempt)
            finally:
                await response.aclose()
        finally:
            await self._connections.give_back(key, connection)
        found = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        return Answer(response.status, found, content, attempt)


async def _read(response: httpcore.Response, target: Target, attempt: int) -> bytes:
    pieces, size = [], 0
    async for piece in response.aiter_stream():
        size += len(piece)
        if size > target.max_bytes:
            raise TooLarge(
                f"{target.host} sent more than the {target.max_bytes:,} bytes that are taken.",
                attempts=attempt,
                status=response.status,
            )
        pieces.append(piece)
    return b"".join(pieces)


def _checked(answer: Answer, check: Callable[[Answer], None] | None) -> Answer | _Trouble:
    if check is None:
        return answer
    try:
        check(answer)
    except TryAgain as again:
        return _Trouble(str(again))
    return answer


def _given_up(target: Target, trouble: _Trouble, attempt: int) -> OutboundError:
    tries = "1 try" if attempt == 1 else f"{attempt} tries"
    message = f"{target.host} gave no usable answer in {tries}; the last: {trouble.reason}."
    return Unavailable(
        message,
        attempts=attempt,
        timed_out=trouble.timed_out,
        status=trouble.status,
        retry_after_s=trouble.after_s,
    )
