"""OpenAI's error envelope on every way a request can fail."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.app import MAX_JSON_BYTES, create_app
from core.clock import now
from core.keys import create_key, create_project
from core.settings import Settings
from tests.api.examples import add_checkpoint, error_of, job_body, jsonl, set_status, upload
from tests.api.running import Api, running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer

JOBS = "/v1/fine_tuning/jobs"


@pytest.mark.parametrize("path", ["/nope", "/v1", "/v1/nope", "/v1/files/", "/index.html"])
def test_an_unknown_path_is_a_json_404(http: httpx.Client, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        error = error_of(http.request(method, path), 404)
        assert path in error["message"] and error["code"] == "unknown_url"


def test_a_wrong_method_is_told_the_right_ones(http: httpx.Client) -> None:
    response = http.put("/v1/files")
    assert error_of(response, 405)["code"] == "method_not_allowed"
    assert response.headers["allow"] in response.json()["error"]["message"]


def test_keys_that_do_not_open(api: Api, sessions: sessionmaker[Session]) -> None:
    with sessions.begin() as session:
        project = create_project(session, "p").id
        revoked, secret = create_key(session, project, "k")
        revoked.revoked_at = now()
        _, expired = create_key(session, project, "k", expires_at=now() - 1)
    for header, message in (
        (None, "You didn't provide an API key"),
        ("Basic abc", "You didn't provide an API key"),
        ("Bearer", "You didn't provide an API key"),
        ("Bearer My API Key", "Incorrect API key"),
        (f"Bearer {secret}", "was revoked"),
        (f"Bearer {expired}", "has expired"),
    ):
        headers = {} if header is None else {"authorization": header}
        response = httpx.get(f"{api.url}/v1/models", headers=headers)
        error = error_of(response, 401)
        assert message in error["message"] and error["code"] == "invalid_api_key"
        assert "openai-project" not in response.headers


def test_a_body_is_not_read_without_a_key(api: Api) -> None:
    for path in ("/v1/files", JOBS, "/v1/chat/completions", "/v1/organization/api_keys"):
        error_of(httpx.post(f"{api.url}{path}", content=b"{broken"), 401)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "line 1|character"),
        (b"[]", "must be an object"),
        (b"\xff\xfe{\x00", "not UTF-8"),
        (b'{"model": "a", "model": "b"}', "twice"),
        (b'{"seed": NaN}', "NaN"),
        (b'{"seed": 1e999}', "range"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "range"),
        (b'{"suffix": "\\ud83d"}', "surrogate"),
        (b'{"suffix": "a\\u0000"}', "U\\+0000"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "deep"),
        (b"[" * 100_000, "deep|nested"),
    ],
)
def test_unreadable_json(http: httpx.Client, body: bytes, reason: str) -> None:
    response = http.post(JOBS, content=body, headers={"content-type": "application/json"})
    error = error_of(response, 400)
    assert error["code"] == "invalid_json"
    assert re.search(reason, error["message"])


def test_a_body_of_another_type(http: httpx.Client) -> None:
    for path, wanted in (
        (JOBS, "application/json"),
        ("/v1/chat/completions", "application/json"),
        ("/v1/files", "multipart/form-data"),
    ):
        error = error_of(http.post(path, data={"a": "b"}), 415)
        assert wanted in error["message"]
    error_of(http.post("/v1/files", json={}), 415)


def test_a_body_that_declares_too_much_is_refused_unread(api: Api) -> None:
    for path, limit in (("/v1/files", 100_000 + 64 * 1024), (JOBS, MAX_JSON_BYTES)):
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {api.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {limit + 1}\r\n\r\n"
        )
        status, body = exchange(api, head.encode())
        assert status == 413
        assert json.loads(body)["error"]["code"] == "request_too_large"


def exchange(api: Api, data: bytes) -> tuple[int, bytes]:
    """Send raw bytes, without the body they promise, and return status and body of the answer."""
    url = httpx.URL(api.url)
    with socket.create_connection((url.host, url.port), timeout=10) as connection:
        connection.sendall(data)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_a_body_of_unknown_length_is_cut_off(http: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(MAX_JSON_BYTES // 65536 + 2):
            yield b" " * 65536

    headers = {"content-type": "application/json"}
    error_of(http.post(JOBS, content=endless(), headers=headers), 413)


@pytest.mark.parametrize("action", ["cancel", "pause", "resume"])
def test_a_state_conflict_is_a_400_that_clients_do_not_repeat(
    action: str, client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    set_status(sessions, job.id, "succeeded")
    response = http.post(f"{JOBS}/{job.id}/{action}")
    error = error_of(response, 400)
    assert job.id in error["message"] and "succeeded" in error["message"]
    assert error["code"] == "invalid_job_state"
    assert response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("status", ["validating_files", "queued", "running", "pausing"])
def test_only_a_paused_job_resumes(
    status: str, client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    set_status(sessions, job.id, status)
    error_of(http.post(f"{JOBS}/{job.id}/resume"), 400)


def test_what_does_not_exist(http: httpx.Client) -> None:
    for method, path in (
        ("GET", f"{JOBS}/ftjob-x"),
        ("POST", f"{JOBS}/ftjob-x/cancel"),
        ("POST", f"{JOBS}/ftjob-x/pause"),
        ("POST", f"{JOBS}/ftjob-x/resume"),
        ("GET", f"{JOBS}/ftjob-x/events"),
        ("GET", f"{JOBS}/ftjob-x/checkpoints"),
    ):
        error = error_of(http.request(method, path), 404)
        assert error["message"] == (
            "Could not find fine tune: ftjob-x. GET /v1/fine_tuning/jobs lists them."
        )
        assert (error["param"], error["code"]) == ("fine_tune_id", "fine_tune_not_found")
    for method in ("GET", "DELETE"):
        error = error_of(http.request(method, "/v1/files/file-x"), 404)
        message = "No such File object: file-x. GET /v1/files lists them."
        assert (error["message"], error["param"]) == (message, "id")
        assert error["code"] is None
        error = error_of(http.request(method, "/v1/models/ft:x%2Fy:z"), 404)
        message = "The model 'ft:x/y:z' does not exist. GET /v1/models lists them."
        assert error["message"] == message
        assert (error["param"], error["code"]) == ("model", "model_not_found")
        error = error_of(http.request(method, "/v1/organization/api_keys/key_x"), 404)
        assert error["message"] == (
            "No such API key: key_x. GET /v1/organization/api_keys lists them."
        )


def test_an_unknown_model_leads_to_the_nearest_or_to_the_list(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    file = upload(client)
    job = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, job.id, 8, name="ft:base-1-2024:org-rft:support:a1b2c3d4")
    for name, way_out in (
        ("bse-1", "Did you mean 'base-1'?"),
        ("gpt-5", "GET /v1/models lists them."),
        ("ft:base-1-2024:x", "GET /v1/models lists them."),
        (
            "ft:base-1-2024:org-rft:support:a1b2c3d5",
            "Did you mean 'ft:base-1-2024:org-rft:support:a1b2c3d4'?",
        ),
    ):
        chat = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
        for response, status in (
            (http.get(f"/v1/models/{name}"), 404),
            (http.post("/v1/chat/completions", json=chat), 404),
            (http.post(JOBS, json=job_body(file.id, model=name)), 400),
        ):
            assert error_of(response, status)["message"].endswith(f". {way_out}")


def test_a_bad_query_parameter(http: httpx.Client) -> None:
    assert error_of(http.get(JOBS, params={"limit": "x"}), 400)["param"] == "limit"
    assert error_of(http.get("/v1/files", params={"order": "up"}), 400)["param"] == "order"
    assert error_of(http.get(JOBS, params={"metadata": "x"}), 400)["param"] == "metadata"


def test_a_base_model_and_a_needed_model_stay(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    assert error_of(http.delete("/v1/models/base-1"), 403)["code"] == "base_model"
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 8, name="ft:a")
    error = error_of(http.delete("/v1/models/ft:a"), 400)
    assert job.id in error["message"] and error["code"] == "model_in_use"


def test_an_unreachable_store_loses_nothing(
    client: openai.OpenAI, http: httpx.Client, store: MemoryStore
) -> None:
    file = upload(client)
    store.down = True
    for response in (
        http.post("/v1/files", files={"file": jsonl()}, data={"purpose": "fine-tune"}),
        http.get(f"/v1/files/{file.id}/content"),
        http.delete(f"/v1/files/{file.id}"),
    ):
        error = error_of(response, 503)
        assert error["code"] == "store_unreachable"
        assert "nothing already stored is lost" in error["message"]
        assert "memory://" not in error["message"]
    store.down = False
    assert client.files.content(file.id).content == jsonl()
    assert len(client.files.list().data) == 1


def test_an_unusable_database_is_a_503_without_its_words(
    settings: Settings, tmp_path: Path
) -> None:
    broken = settings.model_copy(update={"database_url": f"sqlite:///{tmp_path / 'empty.db'}"})
    app = create_app(broken, store=MemoryStore(), serving_transport=ModelServer().transport)
    with running(app) as url:
        response = httpx.get(f"{url}/v1/models", headers={"authorization": "Bearer x"})
    error = error_of(response, 503)
    assert error["code"] == "database_unavailable"
    assert "api_keys" not in error["message"]


def test_a_bug_is_a_500_without_internals(
    api: Api, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.app.state.parts.registry, "all", broken)
    response = http.get("/v1/models")
    error = error_of(response, 500)
    assert "secret" not in response.text and "Traceback" not in response.text
    assert response.headers["x-request-id"] in error["message"]


def test_a_scope_that_is_missing_is_named(
    api: Api, new_key: Callable[..., str], client: openai.OpenAI
) -> None:
    file = upload(client)
    for scopes, method, path, missing in (
        (["read"], "POST", JOBS, "write"),
        (["write"], "GET", f"/v1/files/{file.id}", "read"),
        (["read", "write"], "POST", "/v1/chat/completions", "inference"),
        (["read", "write"], "GET", "/v1/organization/api_keys", "keys"),
    ):
        headers = {"authorization": f"Bearer {new_key(*scopes)}"}
        response = httpx.request(method, f"{api.url}{path}", headers=headers)
        error = error_of(response, 403)
        assert f"'{missing}'" in error["message"] and error["code"] == "insufficient_scope"
