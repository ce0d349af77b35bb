"""Signatures as OpenAI's clients verify them, and sending one message to endpoints of all kinds."""

import asyncio
import json
import time
from collections.abc import Iterator

import openai
import pytest

from core import webhooks
from core.errors import InvalidRequest
from core.webhooks import (
    EVENT_TYPES,
    Outcome,
    check_event_types,
    new_event,
    new_secret,
    send,
    sign,
    signed_headers,
)
from graders.http import Outbound, Policy
from tests.fakes.webhook_receiver import Receiver, Reply

SECRETS = [{"secret": new_secret(), "expires_at": None}]
OLD = {"secret": new_secret(), "expires_at": int(time.time()) + 86_400}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def sent(url: str, *, allow: tuple[str, ...] = ("127.0.0.1",), secrets: list = SECRETS) -> Outcome:  # type: ignore[type-arg]
    async def once() -> Outcome:
        outbound = Outbound(Policy(allow))
        try:
            event = new_event("fine_tuning.job.succeeded", "ftjob-1")
            return await send(outbound, url, event, message_id="wh_1", stored_secrets=secrets)
        finally:
            await outbound.close()

    return asyncio.run(once())


def test_the_published_test_vector() -> None:
    body = (
        b'{"id": "evt_685c059ae3a481909bdc86819b066fb6", "object": "event", "created_at":'
        b' 1750861210, "type": "response.completed", "data": {"id": "resp_123"}}'
    )
    signature = sign(
        "whsec_RdvaYFYUXuIFuEbvZHwMfYFhUf7aMYjYcmM24+Aj40c=",
        "wh_685c059ae39c8190af8c71ed1022a24d",
        1_750_861_210,
        body,
    )
    assert signature == "v1,gUAg4R2hWouRZqRQG4uJypNS8YK885G838+EHb4nKBY="


@pytest.mark.parametrize("type", EVENT_TYPES)
def test_the_official_client_takes_what_we_sign(type: str) -> None:
    event, secret = new_event(type, "thing-1"), new_secret()
    body = json.dumps(event).encode()
    headers = signed_headers([secret], "wh_1", int(time.time()), body)
    client = openai.OpenAI(api_key="none", webhook_secret=secret, _strict_response_validation=True)
    unwrapped = client.webhooks.unwrap(body, headers)
    assert (unwrapped.type, unwrapped.data.id) == (type, "thing-1")  # type: ignore[union-attr]
    assert unwrapped.to_dict() == event
    with pytest.raises(openai.InvalidWebhookSignatureError):
        client.webhooks.unwrap(body + b" ", headers)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        client.webhooks.unwrap(body, headers, secret=new_secret())


def test_a_message_is_signed_with_every_secret_that_is_valid(receiver: Receiver) -> None:
    ended = {"secret": new_secret(), "expires_at": int(time.time()) - 1}
    assert sent(receiver.url, secrets=[*SECRETS, OLD, ended]) == Outcome(200)
    (message,) = receiver.messages
    for each in (*SECRETS, OLD):
        assert message.unwrap(each["secret"]).data.id == "ftjob-1"
    with pytest.raises(openai.InvalidWebhookSignatureError):
        message.unwrap(ended["secret"])
    assert message.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("reply", "status", "said", "gone"),
    [
        (Reply(204), 204, None, False),
        (Reply(500), 500, "status 500", False),
        (Reply(429, headers={"retry-after": "7"}), 429, "status 429", False),
        (Reply(301, headers={"location": "/other"}), 301, "redirects are not followed", False),
        (Reply(404), 404, "only 2xx takes a message", False),
        (Reply(410), 410, "wants no more messages", True),
        (Reply(200, body=b"x" * 200_000), 200, None, False),
        (Reply(400, body=b"x" * 200_000), 400, "status 400", False),
        (Reply(200, broken=True), None, "gave no usable answer", False),
    ],
)
def test_what_an_answer_means(
    receiver: Receiver, reply: Reply, status: int | None, said: str | None, gone: bool
) -> None:
    receiver.replies = [reply]
    outcome = sent(receiver.url)
    assert (outcome.status, outcome.gone) == (status, gone)
    assert outcome.error is None if said is None else said in (outcome.error or "")
    assert len(receiver.messages) == 1
    assert outcome.retry_after_s == (7 if reply.status == 429 else 0)


def test_an_endpoint_that_hangs_is_left(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.1)
    receiver.replies = [Reply(200, hangs=True)]
    outcome = sent(receiver.url)
    assert outcome.status is None
    assert "no answer within 0.1 s" in (outcome.error or "")


def test_an_endpoint_that_is_down_is_an_outcome(receiver: Receiver) -> None:
    receiver.close()
    outcome = sent(receiver.url)
    assert outcome.status is None
    assert "no connection" in (outcome.error or "")


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/hook", "https://localhost/hook", "https://[::1]/hook"]
)
def test_private_addresses_get_nothing(url: str) -> None:
    outcome = sent(url, allow=())
    assert outcome.status is None
    assert "loopback address, which may not be called" in (outcome.error or "")


def test_unknown_types_are_refused_by_name_with_the_nearest() -> None:
    with pytest.raises(InvalidRequest, match=r"'eval\.run\.cancelled'.*'eval\.run\.canceled'"):
        check_event_types(["eval.run.cancelled"])
    with pytest.raises(InvalidRequest, match=r"'batch\.completed'"):
        check_event_types(["batch.completed"])
    with pytest.raises(InvalidRequest):
        new_event("fine_tuning.job.paused", "ftjob-1")
