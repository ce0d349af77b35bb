"""Answers checked against OpenAI's own schemas.

Set RFT_OPENAPI_REFERENCE to a JSON file of OpenAI's OpenAPI document; it is not part of this
repository. Without it the run says so in its list of warnings.
"""

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import httpx
import openai
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator
from sqlalchemy.orm import Session, sessionmaker

from tests.api.examples import (
    METHOD,
    add_checkpoint,
    job_body,
    jsonl,
    set_status,
    upload,
)
from tests.api.running import Api

VARIABLE = "RFT_OPENAPI_REFERENCE"
JOBS = "/fine_tuning/jobs"
#: The paths that are this server's own.
OWN = ("/v1/organization/", "/v1/fine_tuning/dry_runs", "/health")


def reference() -> dict[str, Any] | None:
    """Read the reference, or warn that there is none."""
    path = os.environ.get(VARIABLE)
    if not path:
        message = f"{VARIABLE} is not set: answers were not checked against OpenAI's schemas"
        warnings.warn(message, stacklevel=2)
        return None
    document: dict[str, Any] = json.loads(Path(path).read_text())
    return document


def check(document: dict[str, Any], answer: Any, schema: dict[str, Any]) -> None:
    """Fail with everything in `answer` that `schema` does not allow."""
    root = {**schema, "components": document["components"]}
    errors = [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(root).iter_errors(answer)
    ]
    assert not errors, "\n".join(errors)


def answer_schema(
    document: dict[str, Any], method: str, path: str, kind: str = "application/json"
) -> dict[str, Any]:
    """Return the schema of a 200 answer."""
    operation = document["paths"][path][method.lower()]
    schema: dict[str, Any] = operation["responses"]["200"]["content"][kind]["schema"]
    return schema


def test_answers(
    http: httpx.Client, client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    document = reference()
    if document is None:
        return

    def call(method: str, template: str, *ids: str, **options: Any) -> dict[str, Any]:
        path = template
        for value in ids:
            path = re.sub(r"\{\w+\}", value, path, count=1)
        response = http.request(method, f"/v1{path}", **options)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        check(document, answer, answer_schema(document, method, template))
        return answer

    form = {
        "purpose": "fine-tune",
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": "3600",
    }
    file_id = call("POST", "/files", files={"file": ("a.jsonl", jsonl())}, data=form)["id"]
    call("GET", "/files")
    call("GET", "/files/{file_id}", file_id)
    body = job_body(file_id, metadata={"a": "b"}, suffix="s")
    job_id = call("POST", JOBS, json=body)["id"]
    call("POST", JOBS, json=job_body(upload(client).id))
    job = f"{JOBS}/{{fine_tuning_job_id}}"
    add_checkpoint(sessions, job_id, 4, name="ft:a")
    for part in ("", "/events", "/checkpoints"):
        call("GET", f"{job}{part}", job_id)
    call("GET", JOBS)
    set_status(sessions, job_id, "paused")
    call("POST", f"{job}/resume", job_id)
    call("POST", f"{job}/cancel", job_id)
    call("GET", "/models")
    call("GET", "/models/{model}", "ft:a")
    call("DELETE", "/models/{model}", "ft:a")
    call("DELETE", "/files/{file_id}", file_id)
    chat = {"model": "base-1", "messages": [{"role": "user", "content": "Hi"}]}
    call("POST", "/chat/completions", json=chat)
    events = http.post("/v1/chat/completions", json={**chat, "stream": True}).text
    chunk = answer_schema(document, "POST", "/chat/completions", "text/event-stream")
    for line in events.split("\n\n"):
        if line and line != "data: [DONE]":
            check(document, json.loads(line.removeprefix("data: ")), chunk)


def test_errors(http: httpx.Client) -> None:
    document = reference()
    if document is None:
        return
    schema = {"$ref": "#/components/schemas/ErrorResponse"}
    for method, path in (
        ("GET", "/v1/nope"),
        ("PUT", "/v1/files"),
        ("POST", "/v1/fine_tuning/jobs"),
        ("GET", "/v1/fine_tuning/jobs/x"),
        ("GET", "/v1/models/x"),
    ):
        check(document, http.request(method, path).json(), schema)


def test_every_path_is_openais_or_our_own(api: Api) -> None:
    document = reference()
    if document is None:
        return
    for route in api.app.routes:
        if isinstance(route, APIRoute) and not route.path.startswith(OWN):
            path = route.path.removeprefix("/v1").replace(":path", "")
            assert set(document["paths"][path]) >= {method.lower() for method in route.methods}


def test_our_example_body_is_one_that_openai_takes() -> None:
    document = reference()
    if document is None:
        return
    schema = {"$ref": "#/components/schemas/CreateFineTuningJobRequest"}
    check(document, job_body("file-1"), schema)
    check(document, METHOD, {"$ref": "#/components/schemas/FineTuneMethod"})
