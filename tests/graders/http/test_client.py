"""The outbound client against a real server that misbehaves by script."""

import asyncio
import gzip
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from bench.fake_judge import FakeJudge, Reply, Script
from graders.http import (
    Answer,
    Gate,
    Outbound,
    OutboundError,
    Policy,
    Retry,
    Target,
    TooLarge,
    TryAgain,
    Unavailable,
)

QUICK = Retry(attempts=4, budget_s=60, base_s=0.001)
OK = Reply(body=b'{"fine": true}')


def talk(script: Script, talks: Callable[[Outbound, Target], Awaitable[Any]]) -> Any:
    """Run a conversation with a server that follows the script."""
    with FakeJudge(script) as server:

        async def run() -> Any:
            outbound = Outbound(Policy(["127.0.0.1"]))
            try:
                return await talks(outbound, Target(httpx.URL(f"{server.root}/x"), timeout_s=20))
            finally:
                await outbound.close()

        return asyncio.run(run()), server


def post(script: Script, *, retry: Retry = QUICK, **changes: Any) -> tuple[Any, FakeJudge]:
    """Send one request."""

    async def talks(outbound: Outbound, target: Target) -> Answer | OutboundError:
        try:
            return await outbound.post(replace(target, **changes), b"{}", retry=retry)
        except OutboundError as error:
            return error

    answer, server = talk(script, talks)
    return answer, server


def test_answer_comes_whole() -> None:
    answer, server = post([OK], headers={"X-Key": "secret"})
    assert (answer.status, answer.body, answer.attempts) == (200, b'{"fine": true}', 1)
    [seen] = server.requests
    assert seen.headers["x-key"] == "secret"
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("headers", [{"X-Key": "s3cret\n"}, {"X-Key": "s3cret\r\nX: 1"}])
def test_header_that_cannot_be_sent_is_not_shown(headers: dict[str, str]) -> None:
    error, server = post([OK], headers=headers)
    assert isinstance(error, Unavailable)
    assert "a header of the request cannot be sent" in error.message
    assert "s3cret" not in repr(error) + error.message
    assert server.requests == []


@pytest.mark.parametrize(
    "trouble",
    [
        *(Reply(status=status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 599)),
        Reply(mishap="close"),
        Reply(body=b"x" * 100, mishap="half"),
        Reply(body=b"x", headers={"Content-Length": "nonsense"}),
    ],
)
def test_failures_of_infrastructure_are_tried_again(trouble: Reply) -> None:
    answer, server = post([trouble, trouble, OK])
    assert (answer.status, answer.attempts) == (200, 3)
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 413, 422, 451])
def test_other_answers_are_final(status: int) -> None:
    answer, server = post([Reply(status=status, headers={"Location": "http://127.0.0.1:1/"}), OK])
    assert (answer.status, answer.attempts) == (status, 1)
    assert len(server.requests) == 1


def test_all_tries_fail() -> None:
    error, server = post([Reply(status=503)])
    assert isinstance(error, Unavailable)
    assert (error.attempts, len(server.requests), error.timed_out) == (4, 4, False)
    assert "4 tries; the last: status 503" in str(error)


def test_no_one_listens() -> None:
    with FakeJudge([OK]) as server:
        url = httpx.URL(server.root)

    async def run() -> None:
        await Outbound(Policy(["127.0.0.1"])).post(Target(url), b"", retry=QUICK)

    with pytest.raises(Unavailable, match="no connection"):
        asyncio.run(run())


@pytest.mark.parametrize("mishap", ["hang", "drip"])
def test_time_limit_holds_for_the_whole_answer(mishap: Any) -> None:
    """A server that sends a byte now and then is as slow as one that sends nothing."""
    slow = Reply(body=b"x" * 10_000, mishap=mishap)
    error, _ = post([slow], timeout_s=0.2, retry=Retry(attempts=2, base_s=0.001))
    assert isinstance(error, Unavailable)
    assert (error.timed_out, error.attempts) == (True, 2)
    assert "no answer within 0.2 s" in str(error)


def test_after_a_timeout_the_next_try_may_succeed() -> None:
    answer, _ = post([Reply(mishap="hang"), OK], timeout_s=0.3)
    assert (answer.status, answer.attempts) == (200, 2)


@pytest.mark.parametrize("mishap", [None, "half"])
def test_more_bytes_than_allowed_are_not_read(mishap: Any) -> None:
    error, server = post([Reply(body=b"x" * 3_000_000, mishap=mishap)], max_bytes=1_000_000)
    assert isinstance(error, TooLarge)
    assert len(server.requests) == 1
    assert "1,000,000 bytes" in str(error)


def test_exactly_the_allowed_bytes_are_read() -> None:
    answer, _ = post([Reply(body=b"x" * 1_000_000)], max_bytes=1_000_000)
    assert len(answer.body) == 1_000_000


def test_nothing_is_unpacked() -> None:
    bomb = gzip.compress(b"x" * 10_000_000)
    answer, _ = post([Reply(body=bomb, headers={"Content-Encoding": "gzip"})])
    assert answer.body == bomb


def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = record_sleeps(monkeypatch)
    answer, _ = post([Reply(status=429, headers={"Retry-After": "7"}), OK])
    assert answer.attempts == 2
    assert [wait for wait in waits if wait >= 7] != []


def test_a_wait_beyond_the_budget_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = record_sleeps(monkeypatch)
    error, server = post([Reply(status=429, headers={"Retry-After": "3600"}), OK])
    assert isinstance(error, Unavailable)
    assert len(server.requests) == 1
    assert waits == []
    assert "the wish to wait 3.6e+03 s" in str(error)


def test_everyone_waits_when_the_host_asks_for_it() -> None:
    async def talks(outbound: Outbound, target: Target) -> float:
        gate = Gate(concurrency=4)
        await outbound.post(target, b"", retry=QUICK, gates=[gate])
        return gate._closed_until

    closed_until, _ = talk([Reply(status=503, headers={"Retry-After": "1"}), OK], talks)
    assert closed_until > 0


def record_sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("graders.http.client.asyncio.sleep", sleep)
    return waits


def test_check_of_the_caller_may_ask_for_another_try() -> None:
    def check(answer: Answer) -> None:
        if b"error" in answer.body:
            raise TryAgain("an error in disguise")

    async def talks(outbound: Outbound, target: Target) -> Answer:
        return await outbound.post(target, b"", retry=QUICK, check=check)

    answer, _ = talk([Reply(body=b'{"error": 1}'), OK], talks)
    assert answer.attempts == 2


def test_connections_are_used_again() -> None:
    async def talks(outbound: Outbound, target: Target) -> None:
        for _ in range(5):
            await outbound.post(target, b"", retry=QUICK)

    _, server = talk([OK], talks)
    assert (len(server.requests), server.connections) == (5, 1)


def test_concurrency_is_bounded() -> None:
    async def talks(outbound: Outbound, target: Target) -> None:
        gate = Gate(concurrency=3)
        posts = (outbound.post(target, b"", retry=QUICK, gates=[gate]) for _ in range(20))
        await asyncio.gather(*posts)

    _, server = talk([Reply(body=b"{}", delay_s=0.01)], talks)
    assert (server.most_in_flight, server.connections) == (3, 3)


def test_cancelling_closes_the_connection() -> None:
    async def talks(outbound: Outbound, target: Target) -> None:
        gate = Gate(concurrency=1)
        hanging = asyncio.create_task(outbound.post(target, b"", retry=QUICK, gates=[gate]))
        while server.in_flight == 0:
            await asyncio.sleep(0.01)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert (await outbound.post(target, b"", retry=QUICK, gates=[gate])).status == 200
        assert server.connections == 2, "the first connection was not used again"

    with FakeJudge([Reply(mishap="hang"), OK]) as server:

        async def run() -> None:
            outbound = Outbound(Policy(["127.0.0.1"]))
            await talks(outbound, Target(httpx.URL(server.root)))
            await outbound.close()

        asyncio.run(run())


def test_trusted_connections_are_not_lent_to_strangers() -> None:
    """The operator's own judge lies inside; a user's URL with its address is still refused."""
    with FakeJudge([OK]) as server:

        async def run() -> None:
            outbound = Outbound()
            target = Target(httpx.URL(server.root), trusted=True)
            assert (await outbound.post(target, b"", retry=QUICK)).status == 200
            with pytest.raises(OutboundError, match="must be called by https"):
                await outbound.post(replace(target, trusted=False), b"", retry=QUICK)
            await outbound.close()

        asyncio.run(run())
    assert len(server.requests) == 1


SECRETS = ("header-secret", "query-secret")


@pytest.mark.parametrize(
    "script",
    [
        [Reply(status=500)],
        [Reply(mishap="hang")],
        [Reply(body=b"x" * 2_000)],
        [Reply(body=b"x", headers={"Content-Length": "nonsense"})],
    ],
)
def test_secrets_are_in_no_message_and_no_log(
    script: Sequence[Reply], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def talks(outbound: Outbound, target: Target) -> None:
        secret = replace(
            target,
            url=httpx.URL(f"{target.url}?key={SECRETS[1]}"),
            headers={"Authorization": SECRETS[0]},
            timeout_s=0.2,
            max_bytes=1_000,
        )
        with pytest.raises(OutboundError) as caught:
            await outbound.post(secret, b"", retry=Retry(attempts=2, base_s=0.001))
        assert not any(word in str(caught.value) + repr(caught.value) for word in SECRETS)

    talk(script, talks)
    assert not any(word in caplog.text for word in SECRETS)


def test_connections_to_hosts_that_nobody_asks_again_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graders.http.connections.KEEP_ALIVE_S", 0.02)

    async def talks(outbound: Outbound, first: Target) -> list[Any]:
        with FakeJudge([OK]) as other:
            await outbound.post(first, b"{}", retry=QUICK)
            await asyncio.sleep(0.05)
            second = replace(first, url=httpx.URL(f"{other.root}/x"))
            await outbound.post(second, b"{}", retry=QUICK)
            return [key.port for key in outbound._connections._idle] + [-1, first.url.port]

    ports, _ = talk([OK], talks)
    assert ports[-1] not in ports[:-2]
