"""GET /v1/files/{file_id}/validation."""

from typing import Any

import httpx
import openai
import pytest
from rft.dataset import VERSION
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.services import validation
from core.inspection import apart
from core.models import FileReport
from tests.api.examples import ROWS, error_of, upload

NO_MESSAGES = {"answer": "5"}


def report_on(http: httpx.Client, file_id: str, **query: str) -> dict[str, Any]:
    response = http.get(f"/v1/files/{file_id}/validation", params=query)
    assert response.status_code == 200, response.text
    report: dict[str, Any] = response.json()
    return report


def test_report_names_rule_place_and_mend(client: openai.OpenAI, http: httpx.Client) -> None:
    file = upload(client, [*ROWS, NO_MESSAGES])
    report = report_on(http, file.id)
    assert report["object"] == "file.validation"
    assert (report["file_id"], report["kind"], report["version"]) == (
        file.id,
        "reinforcement",
        VERSION,
    )
    assert (report["ok"], report["rows"], report["valid_rows"]) == (False, 13, 12)
    [error] = report["errors"]
    assert (error["rule"], error["line"], error["path"]) == ("messages_required", 13, "/messages")
    assert error["offset"] == file.bytes - len(b'{"answer": "5"}\n')
    assert error["message"] and error["mend"]


def test_rows_are_read_as_the_kind_that_is_asked_for(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    file = upload(client)
    assert report_on(http, file.id, kind="reinforcement")["ok"]
    for kind, shown in (("supervised", "supervised"), ("sft", "supervised"), ("dpo", "preference")):
        report = report_on(http, file.id, kind=kind)
        assert (report["kind"], report["ok"]) == (shown, False)
    report = report_on(http, file.id)
    assert report["kind"] == report["looks_like"] == "reinforcement"


def test_a_kept_report_is_not_made_again(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    file = upload(client)
    first = report_on(http, file.id, kind="warm_start")
    with sessions.begin() as session:
        kept = session.scalars(select(FileReport).where(FileReport.kind == "warm_start")).one()
        kept.report = {**kept.report, "rows": 77}
    assert report_on(http, file.id, kind="warm_start") == {**first, "rows": 77}
    # One of other rules is: the store is asked again.
    with sessions.begin() as session:
        session.merge(FileReport(sha256=kept.sha256, kind="warm_start", version="0", report={}))
    assert report_on(http, file.id, kind="warm_start") == first


def test_a_large_file_is_read_apart_with_the_same_report(
    client: openai.OpenAI, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [upload(client, [*ROWS, {**NO_MESSAGES, "n": n}]) for n in range(2)]
    near = report_on(http, files[0].id, kind="supervised")
    monkeypatch.setattr(apart, "SMALL_BYTES", 0)
    far = report_on(http, files[1].id, kind="supervised")
    assert {**far, "file_id": files[0].id} == near


def test_too_many_readers_are_told_to_come_back(
    client: openai.OpenAI, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = upload(client)
    monkeypatch.setattr(validation._places, "acquire", lambda **_: False)
    response = http.get(f"/v1/files/{file.id}/validation", params={"kind": "supervised"})
    assert response.status_code == 429
    assert response.headers["retry-after"] == "5"


def test_wrong_questions_are_refused(client: openai.OpenAI, http: httpx.Client) -> None:
    file = upload(client)
    error = error_of(http.get(f"/v1/files/{file.id}/validation", params={"kind": "rl"}), 400)
    assert error["param"] == "kind" and "preference" in error["message"]
    other = client.files.create(file=("notes.txt", b"notes"), purpose="user_data")
    error = error_of(http.get(f"/v1/files/{other.id}/validation"), 400)
    assert "only files for 'fine-tune'" in error["message"]
    error_of(http.get("/v1/files/file-unknown/validation"), 404)
