"""`Idempotency-Key`: a repeated request is carried out once and answered the same again."""

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import openai
import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.orm import Session, sessionmaker

from api.app import MAX_JSON_BYTES
from core import idempotency
from core.clock import now
from core.models import ApiKey, File, IdempotentRequest, Job
from tests.api.access import member
from tests.api.examples import ROWS, error_of, job_body, jsonl, upload
from tests.api.running import Api
from tests.fakes.memory_store import MemoryStore

JOBS, FILES, KEYS = "/v1/fine_tuning/jobs", "/v1/files", "/v1/organization/api_keys"
KEY = {"idempotency-key": "3b8f7c1e"}


def count(sessions: sessionmaker[Session], model: type[Job] | type[File] | type[ApiKey]) -> int:
    """How many rows there are."""
    with sessions() as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


def send(http: httpx.Client, content: bytes, **fields: str) -> httpx.Response:
    """Upload a file with the key."""
    data = {"purpose": "fine-tune", **fields}
    return http.post(FILES, data=data, files={"file": ("rows.jsonl", content)}, headers=KEY)


def test_the_same_request_again(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    body = job_body(upload(client).id)
    first = http.post(JOBS, json=body, headers=KEY)
    again = http.post(JOBS, json=body, headers=KEY)
    assert first.status_code == again.status_code == 200
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert count(sessions, Job) == 1


def test_the_official_client_with_the_header(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    body = job_body(upload(client).id)
    made = {client.fine_tuning.jobs.create(**body, extra_headers=KEY).id for _ in range(3)}
    assert len(made) == 1 and count(sessions, Job) == 1


def test_another_request_with_the_key(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    file = upload(client).id
    http.post(JOBS, json=job_body(file), headers=KEY)
    for path, body in ((JOBS, job_body(file, seed=2)), (FILES, job_body(file))):
        response = http.post(path, json=body, headers=KEY)
        assert error_of(response, 400)["code"] == "idempotency_key_reused"
        assert response.headers["x-should-retry"] == "false"
    assert count(sessions, Job) == 1


def test_a_file_is_the_same_whatever_boundary_its_form_has(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    content = jsonl(ROWS)
    first, again = send(http, content), send(http, content)
    assert again.content == first.content and first.status_code == 200
    assert again.request.headers["content-type"] != first.request.headers["content-type"]
    for other in (send(http, content + b"{}\n"), send(http, content, purpose="batch")):
        assert error_of(other, 400)["code"] == "idempotency_key_reused"
    assert count(sessions, File) == 1


def test_a_refused_request_does_not_use_up_the_key(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    file = upload(client).id
    error_of(http.post(JOBS, json=job_body("file-none"), headers=KEY), 400)
    assert http.post(JOBS, json=job_body(file), headers=KEY).status_code == 200
    assert count(sessions, Job) == 1


def test_a_failed_request_does_not_use_up_the_key(
    http: httpx.Client, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    store.down = True
    error_of(send(http, jsonl()), 503)
    store.down = False
    answer = send(http, jsonl())
    assert answer.status_code == 200 and "idempotent-replayed" not in answer.headers
    assert count(sessions, File) == 1


def test_keys_of_two_projects_are_strangers(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    other = member(api, sessions)
    mine, theirs = send(http, jsonl()), send(other.http, jsonl())
    assert mine.json()["id"] != theirs.json()["id"]
    assert "idempotent-replayed" not in theirs.headers


def test_a_key_that_may_not_make_the_request_gets_no_answer(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    with sessions() as session:
        own = session.scalars(select(ApiKey.project_id)).first()
    send(http, jsonl())
    reader = member(api, sessions, "read", project_id=own)
    error_of(send(reader.http, jsonl()), 403)
    error_of(httpx.post(f"{api.url}{FILES}", headers=KEY), 401)
    mismatched = {**KEY, "OpenAI-Project": "proj_other"}
    error_of(http.post(FILES, headers=mismatched), 401)


def test_an_admins_answer_is_for_nobody_else(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    with sessions() as session:
        own = session.scalars(select(ApiKey.project_id)).first()
    admin = member(api, sessions, "admin", project_id=own)
    made = admin.http.post("/v1/organization/projects", json={"name": "secret"}, headers=KEY)
    again = admin.http.post("/v1/organization/projects", json={"name": "secret"}, headers=KEY)
    assert again.content == made.content
    refusal = http.post("/v1/organization/projects", json={"name": "secret"}, headers=KEY)
    assert error_of(refusal, 400)["code"] == "idempotency_key_reused"


def test_a_second_one_while_the_first_is_being_made(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    with sessions() as session:
        own = session.scalars(select(ApiKey.project_id)).first() or ""
    row_id, before = idempotency.claim(sessions, own, KEY["idempotency-key"])
    assert before is None
    response = send(http, jsonl())
    assert error_of(response, 409)["code"] == "idempotency_key_in_use"
    assert response.headers["x-should-retry"] == "true"
    assert response.headers["retry-after"] == "1"
    idempotency.give_back(sessions, row_id)
    assert send(http, jsonl()).status_code == 200


def test_many_at_once_make_one(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    body = job_body(upload(client).id)
    answers: list[httpx.Response] = []

    def post() -> None:
        answers.append(http.post(JOBS, json=body, headers=KEY))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each.status_code for each in answers} <= {200, 409}
    made = {each.json()["id"] for each in answers if each.status_code == 200}
    assert len(made) == 1 and count(sessions, Job) == 1


def test_the_key_of_a_request_whose_server_died_is_free_after_a_while(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    with sessions() as session:
        own = session.scalars(select(ApiKey.project_id)).first() or ""
    idempotency.claim(sessions, own, KEY["idempotency-key"])
    error_of(send(http, jsonl()), 409)
    age(sessions, idempotency.LOST_S + 1)
    assert send(http, jsonl()).status_code == 200


def test_a_body_may_take_longer_than_a_lost_request(
    http: httpx.Client, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.idempotency.RENEW_S", 0.01)
    begun, done = threading.Event(), threading.Event()
    slow: list[httpx.Response] = []

    def body() -> Iterator[bytes]:
        yield b'{"name": '
        begun.set()
        assert done.wait(20)
        yield b'"ci"}'

    headers = {**KEY, "content-type": "application/json"}
    sender = threading.Thread(
        target=lambda: slow.append(http.post(KEYS, content=body(), headers=headers))
    )
    sender.start()
    assert begun.wait(20)
    until(lambda: bool(claims(sessions)))
    age(sessions, idempotency.LOST_S + 1)
    until(lambda: claims(sessions)[0] > now() - idempotency.LOST_S)
    error_of(http.post(KEYS, json={"name": "ci"}, headers=KEY), 409)
    done.set()
    sender.join()
    assert slow[0].status_code == 200


def claims(sessions: sessionmaker[Session]) -> list[int]:
    """When the requests came."""
    with sessions() as session:
        return list(session.scalars(select(IdempotentRequest.created_at)))


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come true")


def test_a_repetition_with_a_body_that_is_too_large(http: httpx.Client) -> None:
    assert http.post(KEYS, json={"name": "ci"}, headers=KEY).status_code == 200
    pieces = (b"x" * 100_000 for _ in range(MAX_JSON_BYTES // 100_000 + 2))
    headers = {**KEY, "content-type": "application/json"}
    assert error_of(http.post(KEYS, content=pieces, headers=headers), 413)["code"] == (
        "request_too_large"
    )


@pytest.mark.parametrize("headers", [{}, KEY])
@pytest.mark.parametrize(
    "error", [OperationalError("s", {}, Exception("gone")), NoConnectionFree()]
)
def test_a_database_that_is_away(
    api: Api,
    http: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    error: SQLAlchemyError,
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(api.app.state.parts.reads, "key", fail)
    refusal = http.post(KEYS, json={"name": "ci"}, headers=headers)
    assert error_of(refusal, 503)["code"] == "database_unavailable"
    assert refusal.headers["retry-after"] == "2"


def test_paths_that_are_none(http: httpx.Client, sessions: sessionmaker[Session]) -> None:
    assert error_of(http.post("/v1/nothing", headers=KEY), 404)["code"] == "unknown_url"
    assert claims(sessions) == []


def test_an_answer_is_remembered_for_a_day(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    first = send(http, jsonl())
    age(sessions, idempotency.KEPT_S - 60)
    assert send(http, jsonl()).content == first.content
    age(sessions, idempotency.KEPT_S + 1)
    with sessions.begin() as session:
        idempotency.trim(session)
        assert session.scalars(select(IdempotentRequest)).all() == []
    assert send(http, jsonl()).json()["id"] != first.json()["id"]


def age(sessions: sessionmaker[Session], seconds: int) -> None:
    """Let all requests have come so long ago."""
    with sessions.begin() as session:
        session.execute(update(IdempotentRequest).values(created_at=now() - seconds))


def test_a_secret_is_not_kept_and_the_key_not_made_twice(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = http.post(KEYS, json={"name": "ci"}, headers=KEY).json()
    before = count(sessions, ApiKey)
    again = http.post(KEYS, json={"name": "ci"}, headers=KEY)
    assert error_of(again, 409)["code"] == "idempotent_answer_not_kept"
    assert again.headers["x-should-retry"] == "false"
    assert count(sessions, ApiKey) == before
    with sessions() as session:
        row = session.scalars(select(IdempotentRequest)).one()
    assert row.body is None and made["value"] not in str(vars(row))


@pytest.mark.parametrize("key", ["", "k" * 256, "sn\u00f6"])
def test_keys_that_are_none(http: httpx.Client, key: str) -> None:
    headers = {"idempotency-key": key.encode("latin-1")}
    error = error_of(http.post(KEYS, json={"name": "k"}, headers=headers), 400)
    assert error["code"] == "invalid_idempotency_key"


def test_what_is_no_change_is_carried_out_each_time(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    body = {"model": "base-1", "messages": [{"role": "user", "content": "Hi"}]}
    for _ in range(2):
        answer = http.post("/v1/chat/completions", json=body, headers=KEY)
        assert answer.status_code == 200 and "idempotent-replayed" not in answer.headers
    assert http.get("/v1/models", headers=KEY).status_code == 200
    with sessions() as session:
        assert session.scalars(select(IdempotentRequest)).all() == []
