"""For how long a project keeps its things, set and foreseen over HTTP."""

from collections.abc import Callable

import httpx
import openai
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.models import AuditEntry, File
from tests.api.examples import error_of, job_body, upload
from tests.api.running import Api

PATH = "/v1/organization/retention"
DAY_S = 24 * 3600


def test_days_are_set_one_kind_at_a_time(
    http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    first = http.get(PATH).json()
    assert first.pop("project_id").startswith("proj_")
    assert first == {
        "object": "organization.retention",
        **dict.fromkeys(("files", "checkpoints", "samples", "events", "metrics")),
    }
    http.post(PATH, json={"files": 30, "samples": 7})
    changed = http.post(PATH, json={"files": None, "events": 90}).json()
    assert (changed["files"], changed["samples"], changed["events"]) == (None, 7, 90)
    assert {k: v for k, v in http.get(PATH).json().items() if isinstance(v, int)} == {
        "samples": 7,
        "events": 90,
    }
    with sessions() as session:
        entries = session.scalars(select(AuditEntry).order_by(AuditEntry.seq)).all()
    assert len(entries) == 2


REFUSED = [
    ({"file": 3}, "'file' (did you mean 'files'?)"),
    ({"files": 0}, "'files'"),
    ({"files": 1.5}, "'files'"),
    ({"files": "30"}, "'files'"),
]


def test_what_is_no_number_of_days_is_refused(http: httpx.Client) -> None:
    for body, said in REFUSED:
        assert said in error_of(http.post(PATH, json=body), 400)["message"]
    for query in ("kind=file", "within_days=-1", "days=3"):
        error_of(http.get(f"{PATH}/preview?{query}"), 400)


def test_the_preview_says_what_goes_when_and_what_holds_it(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    used, free, young = upload(client), upload(client), upload(client)
    job = client.fine_tuning.jobs.create(**job_body(used.id))
    then = now() - 25 * DAY_S
    with sessions.begin() as session:
        old = File.id.in_((used.id, free.id))
        session.execute(update(File).where(old).values(created_at=then))
    assert http.get(f"{PATH}/preview").json()["data"] == []
    http.post(PATH, json={"files": 30})
    soon = http.get(f"{PATH}/preview?within_days=10").json()
    assert {each["id"]: each["held_by"] for each in soon["data"]} == {
        used.id: job.id,
        free.id: None,
    }
    assert {each["delete_at"] for each in soon["data"]} == {then + 30 * DAY_S}
    assert soon["totals"][0] == {
        "kind": "files",
        "items": 1,
        "bytes": free.bytes,
        "first_delete_at": then + 30 * DAY_S,
    }
    later = http.get(f"{PATH}/preview?within_days=30&kind=files&limit=2").json()
    assert (len(later["data"]), later["has_more"]) == (2, True)
    assert later["totals"][0]["items"] == 2
    assert young.id not in str(later["data"])
    assert http.get(f"{PATH}/preview?within_days=4").json()["data"] == []


def test_a_project_sees_and_sets_only_its_own(
    api: Api, http: httpx.Client, client: openai.OpenAI, new_key: Callable[..., str]
) -> None:
    upload(client)
    http.post(PATH, json={"files": 1})
    with httpx.Client(base_url=api.url, headers={"authorization": f"Bearer {new_key()}"}) as other:
        assert other.get(PATH).json()["files"] is None
        other.post(PATH, json={"files": 5})
        assert other.get(f"{PATH}/preview?within_days=99").json()["data"] == []
    assert http.get(PATH).json()["files"] == 1
    reading = httpx.get(api.url + PATH, headers={"authorization": f"Bearer {new_key('read')}"})
    assert error_of(reading, 403)["code"] == "insufficient_scope"
