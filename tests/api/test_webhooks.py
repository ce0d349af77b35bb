"""Webhook endpoints through the official client, and what is ours beside them."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from api.schemas.webhooks import CreateWebhook
from api.services import webhooks as service
from api.tenancy import Tenant
from core.clock import now
from core.deliveries import fan_out, record
from core.delivery_claims import Claimed, claim_due
from core.models import Job, Outbox, WebhookDelivery, WebhookEndpoint
from core.projects import create_project
from core.queue import enqueue_webhook
from core.settings import Settings
from core.webhooks import EVENT_TYPES, Outcome
from graders.http import Policy
from tests.api.examples import error_of, job_body, upload
from tests.fakes.webhook_receiver import Receiver, Reply

PATH = "/v1/webhook_endpoints"
TYPES = ["fine_tuning.job.succeeded", "fine_tuning.job.cancelled"]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The API's settings with loopback receivers allowed."""
    return settings.model_copy(update={"outbound_hosts": "127.0.0.1"})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def create(client: openai.OpenAI, url: str = "https://hook.example/rft", **changes: Any) -> Any:
    values = {"name": "hook", "url": url, "event_types": TYPES, **changes}
    return client.webhooks.create(**values)


def happen(sessions: sessionmaker[Session], project_id: str, type: str = TYPES[0]) -> list[Claimed]:
    """An event, fanned out, its deliveries claimed as a worker does."""
    with sessions.begin() as session:
        enqueue_webhook(session, project_id, type, "ftjob-1")
    with sessions.begin() as session:
        fan_out(session)
    with sessions.begin() as session:
        return claim_due(session)


def project_of(sessions: sessionmaker[Session], endpoint_id: str) -> str:
    with sessions() as session:
        return session.get_one(WebhookEndpoint, endpoint_id).project_id


def test_an_endpoint_through_the_official_client(client: openai.OpenAI, http: httpx.Client) -> None:
    made = create(client)
    assert made.signing_secret.startswith("whsec_")
    assert (made.name, made.url, made.event_types) == ("hook", "https://hook.example/rft", TYPES)
    assert made.signing_secret_hint == f"whsec_…{made.signing_secret[-4:]}"
    shown = client.webhooks.retrieve(made.id)
    assert shown.to_dict() == {
        name: value for name, value in made.to_dict().items() if name != "signing_secret"
    }
    assert (shown.enabled, shown.status) == (True, "active")  # type: ignore[attr-defined]
    assert [each.id for each in client.webhooks.list()] == [made.id]
    changed = client.webhooks.update(made.id, name="other", event_types=TYPES[:1])
    assert (changed.name, changed.event_types, changed.url) == ("other", TYPES[:1], made.url)
    assert client.webhooks.event_types.list().data == list(EVENT_TYPES)
    for path in (PATH, f"{PATH}/{made.id}", f"{PATH}/{made.id}/deliveries"):
        assert made.signing_secret not in http.get(path).text
    deleted = client.webhooks.delete(made.id)
    assert deleted.to_dict() == {
        "id": made.id,
        "object": "webhook_endpoint.deleted",
        "deleted": True,
    }
    assert list(client.webhooks.list()) == []
    with pytest.raises(openai.NotFoundError):
        client.webhooks.retrieve(made.id)


def test_deleting_forgets_the_secrets(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    client.webhooks.delete(made.id)
    with sessions() as session:
        assert session.scalars(select(WebhookEndpoint)).one().secrets == []


#: A change to a good body, the place that the answer names, and words that it says.
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"event_types": ["eval.run.cancelled"]}, "event_types", "'eval.run.canceled'"),
    ({"event_types": ["batch.completed"]}, "event_types", "no event that this server sends"),
    ({"event_types": []}, "event_types", "at least"),
    ({"event_types": None}, "event_types", ""),
    ({"url": "http://hook.example/"}, "url", "must be called by https"),
    ({"url": "https://10.0.0.8/"}, "url", "private address"),
    ({"url": "https://[::1]/"}, "url", "loopback address"),
    ({"url": "https://user:pass@hook.example/"}, "url", "user or password"),
    ({"url": "ftp://hook.example/"}, "url", "URL as in"),
    ({"url": "https://hook.example/" + "a" * 2048}, "url", "at most"),
    ({"name": ""}, "name", "at least"),
    ({"event_type": TYPES}, "event_type", "did you mean 'event_types'"),
]


def test_what_is_wrong_is_named(http: httpx.Client) -> None:
    good = {"name": "hook", "url": "https://hook.example/", "event_types": TYPES}
    for changes, param, said in WRONG:
        error = error_of(http.post(PATH, json={**good, **changes}), 400)
        assert (error["param"], said in error["message"]) == (param, True), error
    assert http.get(PATH).json()["data"] == []


def test_a_wrong_url_is_refused_in_a_change_too(client: openai.OpenAI) -> None:
    made = create(client)
    with pytest.raises(openai.BadRequestError, match="private address"):
        client.webhooks.update(made.id, url="https://192.168.1.1/")
    assert client.webhooks.retrieve(made.id).url == made.url


def test_a_project_has_a_bounded_number_of_endpoints(
    client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.services.webhooks.MAX_ENDPOINTS", 2)
    first, _ = create(client), create(client)
    with pytest.raises(openai.BadRequestError, match="at most 2"):
        create(client)
    client.webhooks.delete(first.id)
    create(client)


def test_a_change_of_nothing_leaves_the_time(client: openai.OpenAI, http: httpx.Client) -> None:
    made = create(client)
    same = http.post(f"{PATH}/{made.id}", json={"name": "hook", "url": None, "enabled": True})
    assert same.json()["updated_at"] == made.updated_at


def test_rotation_with_and_without_overlap(
    client: openai.OpenAI, sessions: sessionmaker[Session], receiver: Receiver
) -> None:
    first = create(client, receiver.url)
    second = client.webhooks.rotate_secret(first.id, keep_old_secret_active_for_24_hours=True)
    client.webhooks.test(first.id, event_type=TYPES[0])
    (message,) = receiver.messages
    for secret in (first.signing_secret, second.signing_secret):
        assert message.unwrap(secret).type == TYPES[0]
    with sessions() as session:
        (newest, old) = session.get_one(WebhookEndpoint, first.id).secrets
    assert newest["expires_at"] is None
    assert old["expires_at"] == pytest.approx(now() + 24 * 3600, abs=60)
    third = client.webhooks.rotate_secret(first.id)
    client.webhooks.test(first.id, event_type=TYPES[0])
    message = receiver.messages[-1]
    assert message.unwrap(third.signing_secret).type == TYPES[0]
    for secret in (first.signing_secret, second.signing_secret):
        with pytest.raises(openai.InvalidWebhookSignatureError):
            message.unwrap(secret)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_of_two_rotations_at_once_none_is_lost(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session:
        project_id = create_project(session, "p").id
        tenant = Tenant(session, project_id)
        body = CreateWebhook(name="n", url="https://hook.example/", event_types=TYPES)
        row, first = service.create(tenant, Policy(), body)
    shown = [first]

    def rotate(session: Session) -> None:
        tenant = Tenant(session, project_id)
        shown.append(service.rotate_secret(tenant, service.find(tenant, row.id), keep_old=True))

    def rotate_too() -> None:
        with factory.begin() as session:
            rotate(session)

    with factory.begin() as session:
        rotate(session)
        other = threading.Thread(target=rotate_too)
        other.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not session.scalar(waiting):
            time.sleep(0.01)
    other.join(20)
    with factory() as session:
        stored = session.get_one(WebhookEndpoint, row.id).secrets
    assert {each["secret"] for each in stored} == {each.get_secret_value() for each in shown}


def test_secrets_that_sign_at_the_same_time_are_few(client: openai.OpenAI) -> None:
    made = create(client)
    for _ in range(3):
        client.webhooks.rotate_secret(made.id, keep_old_secret_active_for_24_hours=True)
    with pytest.raises(openai.BadRequestError, match="4 secrets that still sign"):
        client.webhooks.rotate_secret(made.id, keep_old_secret_active_for_24_hours=True)
    client.webhooks.rotate_secret(made.id)


def test_a_test_shows_the_answer_whatever_it_is(
    client: openai.OpenAI, http: httpx.Client, receiver: Receiver
) -> None:
    made = create(client, receiver.url)
    receiver.replies = [Reply(204), Reply(500), Reply(301)]
    answers = [
        client.webhooks.test(made.id, event_type="eval.run.failed").status_code
        for _ in receiver.replies
    ]
    assert answers == [204, 500, 301]
    event = receiver.messages[0].unwrap(made.signing_secret)
    assert event.type == "eval.run.failed"
    assert event.data.id.startswith("evalrun_test")
    default = http.post(f"{PATH}/{made.id}/test", json={})
    assert default.json()["event_type"] == TYPES[0]
    receiver.close()
    error = error_of(http.post(f"{PATH}/{made.id}/test", json={}), 400)
    assert (error["code"], "no connection" in error["message"]) == ("webhook_unreachable", True)
    error = error_of(http.post(f"{PATH}/{made.id}/test", json={"event_type": "ping"}), 400)
    assert error["param"] == "event_type"


def test_deliveries_are_shown_with_their_trouble_and_replayed(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    (claimed,) = happen(sessions, project_of(sessions, made.id))
    with sessions.begin() as session:
        record(session, claimed, Outcome(503, "It said 503."))
    page = http.get(f"{PATH}/{made.id}/deliveries").json()
    (shown,) = page["data"]
    assert page["first_id"] == page["last_id"] == shown["id"] == claimed.id
    assert shown["event"] == claimed.event
    assert (shown["status"], shown["attempts"]) == ("pending", 1)
    assert (shown["response_status"], shown["error"]) == (503, "It said 503.")
    assert shown["next_attempt_at"] > shown["last_attempt_at"]
    assert http.get(f"{PATH}/{made.id}").json()["status"] == "failing"
    with sessions.begin() as session:
        session.get_one(WebhookDelivery, claimed.id).status = "failed"
    assert http.get(f"{PATH}/{made.id}/deliveries?status=pending").json()["data"] == []
    assert len(http.get(f"{PATH}/{made.id}/deliveries?status=failed").json()["data"]) == 1
    error_of(http.get(f"{PATH}/{made.id}/deliveries?status=lost"), 400)
    again = http.post(f"{PATH}/{made.id}/deliveries/{claimed.id}/replay").json()
    assert (again["status"], again["finished_at"]) == ("pending", None)
    assert http.get(f"{PATH}/{made.id}/deliveries/{claimed.id}").json() == again
    with sessions.begin() as session:
        session.get_one(WebhookDelivery, claimed.id).status = "failed"
    for since, count in ((now() + 60, 0), (now() - 60, 1)):
        answer = http.post(f"{PATH}/{made.id}/replay", json={"since": since}).json()
        assert answer == {"object": "webhook_endpoint.replay", "replayed": count}


def test_nothing_is_replayed_to_an_endpoint_that_is_off(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    (claimed,) = happen(sessions, project_of(sessions, made.id))
    off = http.post(f"{PATH}/{made.id}", json={"enabled": False}).json()
    assert (off["enabled"], off["status"], off["disabled_reason"]) == (False, "disabled", None)
    for path in (f"deliveries/{claimed.id}/replay", "replay"):
        error = error_of(
            http.post(f"{PATH}/{made.id}/{path}", json={"since": 0} if path == "replay" else {}),
            400,
        )
        assert error["code"] == "webhook_endpoint_disabled"


def test_an_endpoint_that_was_turned_off_says_why_and_comes_back(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    (claimed,) = happen(sessions, project_of(sessions, made.id))
    with sessions.begin() as session:
        record(session, claimed, Outcome(410, "gone", gone=True))
    shown = http.get(f"{PATH}/{made.id}").json()
    assert (shown["enabled"], shown["status"]) == (False, "disabled")
    assert "410" in shown["disabled_reason"]
    back = http.post(f"{PATH}/{made.id}", json={"enabled": True}).json()
    assert (back["enabled"], back["status"], back["disabled_reason"]) == (True, "active", None)


def test_deliveries_of_another_endpoint_are_not_found(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    (claimed,) = happen(sessions, project_of(sessions, made.id))
    other = create(client)
    error_of(http.get(f"{PATH}/{other.id}/deliveries/{claimed.id}"), 404)


def test_a_cancelled_job_leaves_its_event_for_the_workers(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    client.fine_tuning.jobs.cancel(job.id)
    with sessions() as session:
        row = session.scalars(select(Outbox).where(Outbox.kind == "webhook")).one()
        project_id = session.get_one(Job, job.id).project_id
    assert row.payload["project_id"] == project_id
    assert row.payload["event"]["type"] == "fine_tuning.job.cancelled"
