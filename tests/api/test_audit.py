"""The audit log: every change is in it, with the change or not at all, and no secret."""

from pathlib import Path

import httpx
import openai
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import event, select
from sqlalchemy.orm import Session, sessionmaker

from api.audit import action_of
from core.audit import SHOWN
from core.models import ApiKey, AuditEntry, Base, Job
from tests.api.access import member
from tests.api.examples import add_checkpoint, error_of, job_body, upload
from tests.api.running import Api

LOG = "/v1/organization/audit_logs"
WEBHOOK = {"name": "w", "url": "https://h.test/x", "event_types": ["fine_tuning.job.failed"]}
#: Tables whose rows come and go with what is in `SHOWN`, or that no request for a change writes.
BESIDE = {
    "audit_log",
    "eval_items",
    "events",
    "file_reports",
    "idempotent_requests",
    "metric_points",
    "metric_series",
    "metrics",
    "outbox",
    "rollouts",
    "samples",
}


def types(http: httpx.Client, **query: object) -> list[str]:
    """The types of the entries, newest first."""
    answer = http.get(LOG, params=query)
    assert answer.status_code == 200, answer.text
    return [entry["type"] for entry in answer.json()["data"]]


def test_every_table_is_watched_or_named_here() -> None:
    watched = {model.__tablename__ for model in SHOWN}
    assert set(Base.metadata.tables) == watched | BESIDE


def test_changes_are_recorded_with_who_and_what(client: openai.OpenAI, http: httpx.Client) -> None:
    file = upload(client)
    job = client.fine_tuning.jobs.create(**job_body(file.id))
    cancelled = http.post(f"/v1/fine_tuning/jobs/{job.id}/cancel")
    client.files.delete(file.id)
    entries = http.get(LOG).json()["data"]
    assert [(entry["type"], entry[entry["type"]]["id"]) for entry in entries] == [
        ("file.deleted", file.id),
        ("fine_tuning.job.cancelled", job.id),
        ("fine_tuning.job.created", job.id),
        ("file.created", file.id),
    ]
    key = http.get("/v1/organization/api_keys").json()["data"][0]
    assert all(entry["actor"]["api_key"]["id"] == key["id"] for entry in entries)
    assert entries[1]["request_id"] == cancelled.headers["x-request-id"]
    assert entries[3]["file.created"]["data"] == {"filename": "rows.jsonl", "purpose": "fine-tune"}


def test_the_official_client_reads_it(api: Api, client: openai.OpenAI, http: httpx.Client) -> None:
    made = http.post("/v1/organization/api_keys", json={"name": "ci"}).json()
    upload(client)
    key = client.api_key
    with openai.OpenAI(api_key=key, admin_api_key=key, base_url=f"{api.url}/v1") as sdk:
        logs = sdk.admin.organization.audit_logs
        page = logs.list(event_types=["api_key.created"], effective_at={"gt": 1})
        assert [entry.api_key_created.id for entry in page if entry.api_key_created] == [made["id"]]
        assert [entry.id for entry in logs.list(resource_ids=["none"])] == []
        assert len(list(logs.list(limit=1))) == 2


def test_a_change_that_fails_is_not_recorded(client: openai.OpenAI, http: httpx.Client) -> None:
    with pytest.raises(openai.BadRequestError):
        client.fine_tuning.jobs.create(**job_body("file-none"))
    client.models.list()
    http.post("/v1/fine_tuning/alpha/graders/validate", json={"grader": {"type": "none"}})
    assert types(http) == []


def test_what_was_so_already_is_no_change(
    api: Api, client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 1, name="ft:x", final=True)
    body = {"project_ids": [member(api, sessions).project_id]}
    for _ in range(2):
        path = "/v1/fine_tuning/checkpoints/ft:x/permissions"
        assert http.post(path, json=body).status_code == 200
    assert types(http, **{"event_types[]": "checkpoint.permission.created"}) == [
        "checkpoint.permission.created"
    ]


def test_without_its_entry_there_is_no_change(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no room in the audit log")

    event.listen(AuditEntry, "before_insert", refuse)
    try:
        answer = http.post("/v1/organization/api_keys", json={"name": "ci"})
    finally:
        event.remove(AuditEntry, "before_insert", refuse)
    error_of(answer, 500)
    with sessions() as session:
        assert session.scalars(select(ApiKey).where(ApiKey.name == "ci")).all() == []


def test_no_secret_is_in_it(http: httpx.Client, sessions: sessionmaker[Session]) -> None:
    secrets = [
        http.post("/v1/organization/api_keys", json={"name": "ci"}).json()["value"],
        http.post("/v1/webhook_endpoints", json=WEBHOOK).text,
    ]
    assert "whsec_" in secrets[1]
    with sessions() as session:
        rows = session.scalars(select(AuditEntry)).all()
        assert [row.action for row in rows] == ["api_key.created", "webhook_endpoint.created"]
        shown = str([row.data for row in rows])
        hashes = session.scalars(select(ApiKey.hash)).all()
    for value in (secrets[0], "whsec_", "h.test", *hashes):
        assert value not in shown


def test_each_project_reads_its_own_and_an_admin_key_all(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    other = member(api, sessions)
    other.http.post("/v1/organization/api_keys", json={"name": "theirs"})
    admin = member(api, sessions, "admin")
    own = http.get("/v1/organization/projects").json()["data"][0]["id"]
    admin.http.post(f"/v1/organization/projects/{own}", json={"name": "renamed"})
    admin.http.post(f"/v1/organization/projects/{own}/limits", json={"live_jobs": 1})
    made = admin.http.post("/v1/organization/projects", json={"name": "new"}).json()["id"]
    admin.http.post(f"/v1/organization/projects/{made}/archive")
    assert types(http) == ["rate_limit.updated", "project.updated"]
    assert http.get(LOG).json()["data"][0]["project"] == {"id": own, "name": "renamed"}
    assert types(other.http) == ["api_key.created"]
    assert types(http, project_ids=other.project_id) == []
    everything = ["project.archived", "project.created", "rate_limit.updated", "project.updated"]
    assert types(admin.http) == [*everything, "api_key.created"]
    assert types(admin.http, project_ids=made) == everything[:2]
    reader = member(api, sessions, "read", project_id=own)
    error_of(reader.http.get(LOG), 403)


def test_pages_and_filters(http: httpx.Client) -> None:
    ids = [
        http.post("/v1/organization/api_keys", json={"name": str(n)}).json()["id"] for n in range(4)
    ]
    first = http.get(LOG, params={"limit": 2}).json()
    rest = http.get(LOG, params={"limit": 2, "after": first["last_id"]}).json()
    shown = [entry["api_key.created"]["id"] for entry in [*first["data"], *rest["data"]]]
    assert shown == ids[::-1] and first["has_more"] and not rest["has_more"]
    back = http.get(LOG, params={"limit": 2, "before": rest["first_id"]}).json()
    assert back["data"] == first["data"]
    at = first["data"][0]["effective_at"]
    assert types(http, **{"effective_at[gte]": at + 10}) == []
    assert len(types(http, **{"effective_at[lte]": at, "event_types[]": "api_key.created"})) == 4
    for query, param in (
        ({"event_type": "x"}, "event_type"),
        ({"actor_emails[]": "a@b"}, "actor_emails[]"),
        ({"effective_at[at]": "1"}, "effective_at[at]"),
        ({"effective_at[gt]": "soon"}, "effective_at[gt]"),
        ({"after": "a", "before": "b"}, "before"),
    ):
        assert error_of(http.get(LOG, params=query), 400)["param"] == param


def test_a_statement_that_changes_rows_is_recorded(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    """`transition` updates a job without holding it as an object."""
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    with sessions.begin() as session:
        session.execute(Job.__table__.update().values(status="queued"))
    http.post(f"/v1/fine_tuning/jobs/{job.id}/pause")
    http.post(f"/v1/fine_tuning/jobs/{job.id}/resume")
    assert types(http)[:2] == ["fine_tuning.job.resumed", "fine_tuning.job.paused"]


def test_every_change_has_a_name_in_the_documentation(api: Api) -> None:
    page = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
    for route in api.app.routes:
        if isinstance(route, APIRoute) and route.path.startswith("/v1"):
            for method in route.methods - {"GET", "HEAD"}:
                action = action_of(method, route.path)
                silent = ("completion.created", "grader.run", "grader.validate")
                assert action.endswith(silent) or f"`{action}`" in page, action
