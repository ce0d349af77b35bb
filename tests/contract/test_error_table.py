"""Each row of the table of errors, as a request meets it: status, envelope, headers, sentence."""

from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from api.app import MAX_JSON_BYTES
from api.openapi.errors import TABLE
from core.models import Project
from tests.api.examples import job_body, jsonl, upload
from tests.api.running import Api
from tests.fakes.memory_store import MemoryStore

JOBS, FILES, KEYS = "/v1/fine_tuning/jobs", "/v1/files", "/v1/organization/api_keys"
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the error, having checked status, envelope and headers."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    assert int(response.headers["openai-processing-ms"]) >= 0
    assert response.headers["openai-version"]
    if status in (500, 503):
        assert "x-should-retry" not in response.headers
    error: dict[str, Any] = response.json()["error"]
    assert error["message"].endswith((".", "'purpose'"))
    return error


@pytest.mark.parametrize(
    ("request_", "status", "param", "code", "message"),
    [
        (("GET", f"{JOBS}/x"), 404, "fine_tune_id", "fine_tune_not_found", "Could not find fine"),
        (("POST", f"{JOBS}/x/cancel"), 404, "fine_tune_id", "fine_tune_not_found", "Could not"),
        (("GET", f"{JOBS}/x/events"), 404, "fine_tune_id", "fine_tune_not_found", "Could not"),
        (("GET", f"{FILES}/x"), 404, "id", None, "No such File object: x"),
        (("GET", f"{FILES}/x/content"), 404, "id", None, "No such File object: x"),
        (("GET", "/v1/models/x"), 404, "model", "model_not_found", "The model 'x' does not exist"),
        (("GET", "/v1/evals/x"), 404, None, None, "x"),
        (("GET", "/v1/nope"), 404, None, "unknown_url", "Unknown request URL: GET /v1/nope"),
        (("PUT", FILES), 405, None, "method_not_allowed", "use GET, POST."),
    ],
)
def test_what_a_request_without_a_body_meets(
    http: httpx.Client,
    request_: tuple[str, str],
    status: int,
    param: str | None,
    code: str | None,
    message: str,
) -> None:
    response = http.request(*request_)
    error = error_of(response, status)
    assert message in error["message"]
    assert response.headers["x-should-retry"] == "false"
    if param or code:
        assert (error["param"], error["code"]) == (param, code)


def test_what_a_job_that_cannot_be_made_meets(client: openai.OpenAI, http: httpx.Client) -> None:
    file = upload(client).id
    for changes, param, code, message in (
        ({"training_file": "file-x"}, "training_file", None, "invalid training_file: file-x"),
        ({"validation_file": "file-x"}, "validation_file", None, "invalid validation_file: file-x"),
        ({"model": "x"}, None, "model_not_available", "Model x is not available for fine-tuning"),
    ):
        response = http.post(JOBS, json={**job_body(file), **changes})
        error = error_of(response, 400)
        assert error["message"].startswith(message)
        assert (error["param"], error["code"]) == (param, code)


def test_what_an_upload_that_cannot_be_taken_meets(http: httpx.Client) -> None:
    rows = {"file": ("a.jsonl", jsonl())}
    error = error_of(http.post(FILES, files=rows, data={"purpose": "x"}), 400)
    assert error["param"] == "purpose" and error["message"].startswith("'x' is not one of [")
    text = {"file": ("a.jsonl", b"no json\n")}
    error = error_of(http.post(FILES, files=text, data={"purpose": "fine-tune"}), 400)
    assert "line 1" in error["message"].lower()


def test_an_unknown_model_in_chat(http: httpx.Client) -> None:
    error = error_of(http.post(CHAT, json={"model": "x", "messages": HI}), 404)
    assert error["code"] == "model_not_found" and "x" in error["message"]


@pytest.fixture
def meets(
    api: Api,
    http: httpx.Client,
    client: openai.OpenAI,
    store: MemoryStore,
    sessions: sessionmaker[Session],
    new_key: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> dict[int, Callable[[], httpx.Response]]:
    """For each status of the table a request that ends in it."""

    def conflict() -> httpx.Response:
        headers = {"idempotency-key": "a"}
        http.post(KEYS, json={"name": "a"}, headers=headers)
        return http.post(KEYS, json={"name": "a"}, headers=headers)

    def too_many() -> httpx.Response:
        file = upload(client).id
        with sessions.begin() as session:
            session.execute(update(Project).values(limits={"live_jobs": 0}))
        return http.post(JOBS, json=job_body(file))

    def bug() -> httpx.Response:
        def broken(*_: object) -> None:
            raise RuntimeError("secret detail")

        monkeypatch.setattr(api.app.state.parts.registry, "all", broken)
        return http.get("/v1/models")

    def without_store() -> httpx.Response:
        file = upload(client).id
        store.down = True
        return http.get(f"{FILES}/{file}/content")

    def forbidden() -> httpx.Response:
        headers = {"authorization": f"Bearer {new_key('read')}"}
        return httpx.post(f"{api.url}{JOBS}", headers=headers, json={})

    return {
        400: lambda: http.post(JOBS, json={}),
        401: lambda: httpx.get(f"{api.url}/v1/models"),
        403: forbidden,
        404: lambda: http.get(f"{JOBS}/x"),
        409: conflict,
        413: lambda: http.post(JOBS, content=b" " * (MAX_JSON_BYTES + 1)),
        415: lambda: http.post(JOBS, data={"a": "b"}),
        429: too_many,
        500: bug,
        503: without_store,
    }


@pytest.mark.parametrize("status", TABLE)
def test_every_row_of_the_documents_table_happens(
    meets: dict[int, Callable[[], httpx.Response]], status: int
) -> None:
    response = meets[status]()
    error = error_of(response, status)
    assert "secret" not in response.text or status == 409
    assert error["code"] or status == 400
    if status not in (429, 500, 503):
        assert response.headers["x-should-retry"] == "false"
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"
    if status == 503:
        assert int(response.headers["retry-after"]) >= 1
