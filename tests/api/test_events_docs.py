"""docs/events.md and docs/webhooks.md: their examples run, their tables and numbers are true."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from api.routes import stream
from api.services import event_hub, webhooks
from core import deliveries
from core import delivery_claims as claims
from core import webhooks as messages
from core.settings import Settings
from tests.api.examples import job_body, upload
from tests.api.running import Api
from tests.fakes.webhook_receiver import Receiver, Reply

DOCS = Path(__file__).parents[2] / "docs"
WEBHOOKS, EVENTS = (DOCS / name for name in ("webhooks.md", "events.md"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The API's settings with loopback receivers allowed."""
    return settings.model_copy(update={"outbound_hosts": "127.0.0.1"})


@pytest.fixture
def names(api: Api, client: openai.OpenAI) -> Iterator[dict[str, Any]]:
    """What the examples take for granted."""
    headers = {"authorization": f"Bearer {api.key}"}
    with httpx.Client(base_url=f"{api.url}/v1", headers=headers) as http:
        known = {"client": client, "http": http, "openai": openai, "httpx": httpx}
        yield {**known, "json": json, "time": time, "Iterator": Iterator}


def test_the_webhook_examples_run_and_their_receiver_takes_what_is_sent(
    names: dict[str, Any], client: openai.OpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    with Receiver([Reply(204)]) as receiver:
        for block in blocks(WEBHOOKS):
            exec(block.replace("https://hooks.example.com/rft", receiver.url), names)
        job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
        endpoint, old = names["endpoint"], names["endpoint"].signing_secret
        client.webhooks.test(endpoint.id, event_type="fine_tuning.job.failed")
        message = receiver.messages[-1]
        receive = names["receive"]
        assert receive(message.body, dict(message.headers)) == 204
        names["secret"] = old  # both sign: the example keeps the old one for a day
        assert receive(message.body, dict(message.headers)) == 204
        assert receive(message.body + b" ", dict(message.headers)) == 400
    signed = messages.signed_headers(
        [names["secret"]],
        "wh_1",
        int(time.time()),
        body := json.dumps(messages.new_event("fine_tuning.job.succeeded", job.id)).encode(),
    )
    assert [receive(body, signed) for _ in range(2)] == [204, 204]
    assert capsys.readouterr().out == f"{job.id} made None\n"


def test_the_event_example_follows_a_job_to_its_end(
    names: dict[str, Any], client: openai.OpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    client.fine_tuning.jobs.cancel(job.id)
    for block in blocks(EVENTS):
        exec(block, {**names, "job": job})
    said = capsys.readouterr().out.splitlines()
    assert said == [f"Created fine-tuning job: {job.id}", "Fine-tuning job cancelled"]


def test_every_event_type_and_number_is_in_the_pages() -> None:
    hooks, events = WEBHOOKS.read_text(), EVENTS.read_text()
    for type in messages.EVENT_TYPES:
        assert f"`{type}`" in hooks
    waits = "5 s, 30 s, 2 min, 5 min, 15 min, 30 min, 1 h, 2 h, 4 h and then\nevery 8 h"
    seconds = {"s": 1, "min": 60, "h": 3600}
    named = [int(n) * seconds[unit] for n, unit in re.findall(r"(\d+) (s|min|h)\b", waits)]
    assert waits in hooks
    assert named == [*deliveries.WAITS_S, deliveries.LAST_WAIT_S]
    for text in (
        f"within {messages.TIMEOUT_S:g} seconds",
        f"{messages.MAX_ANSWER_BYTES // 1024} KiB",
        f"{deliveries.TRIED_S // 3600} hours",
        f"kept for {deliveries.KEPT_S // 86_400} days",
        f"{claims.PER_ENDPOINT} messages to one endpoint",
        f"{claims.PER_PROJECT} to all endpoints of a project",
        f"{deliveries.JITTER:.0%}".replace("%", " %"),
        f"at most {webhooks.MAX_ENDPOINTS} endpoints",
    ):
        assert text in hooks, text
    for text in (
        f"{event_hub.MAX_STREAMS:,} streams, {event_hub.MAX_OF_PROJECT} of one project",
        f"after {event_hub.HEARTBEAT_S:g} s of silence",
        f"takes nothing for {stream.TAKE_S:g} s",
    ):
        assert text in events, text
