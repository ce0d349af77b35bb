"""Projects, their keys and limits: the scope `admin` manages all, other keys see their own."""

from collections.abc import Iterator

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import ApiKey
from tests.api.access import Member, member
from tests.api.examples import error_of
from tests.api.running import Api

PROJECTS = "/v1/organization/projects"


@pytest.fixture
def admin(api: Api, sessions: sessionmaker[Session]) -> Member:
    """A key with no other scope than `admin`."""
    return member(api, sessions, "admin")


@pytest.fixture
def sdk(api: Api, admin: Member) -> Iterator[openai.OpenAI]:
    """The official client with an admin key, which checks every answer."""
    with openai.OpenAI(
        api_key=admin.key,
        admin_api_key=admin.key,
        base_url=f"{api.url}/v1",
        max_retries=0,
        _strict_response_validation=True,
    ) as client:
        yield client


def test_the_official_client_manages_projects(sdk: openai.OpenAI) -> None:
    projects = sdk.admin.organization.projects
    made = projects.create(name="team")
    assert (made.name, made.status, made.archived_at) == ("team", "active", None)
    assert projects.update(made.id, name="crew").name == "crew"
    assert projects.retrieve(made.id).name == "crew"
    assert made.id in [each.id for each in projects.list(limit=1)]
    archived = projects.archive(made.id)
    assert archived.status == "archived" and archived.archived_at is not None
    assert made.id not in [each.id for each in projects.list()]
    assert made.id in [each.id for each in projects.list(include_archived=True)]
    with pytest.raises(openai.BadRequestError, match="archived"):
        projects.update(made.id, name="again")


def test_the_official_client_manages_a_projects_keys(sdk: openai.OpenAI, admin: Member) -> None:
    project = sdk.admin.organization.projects.create(name="team")
    created = admin.http.post(f"{PROJECTS}/{project.id}/api_keys", json={"name": "ci"}).json()
    keys = sdk.admin.organization.projects.api_keys
    shown = keys.retrieve(created["id"], project_id=project.id)
    assert (shown.name, shown.owner_project_access) == ("ci", "active")
    headers = {"authorization": f"Bearer {created['value']}"}
    answer = admin.http.get("/v1/files", headers=headers)
    assert answer.headers["openai-project"] == project.id
    narrowed = keys.update(created["id"], project_id=project.id, scopes=["read"])
    assert narrowed.id == created["id"]
    error_of(admin.http.post("/v1/files", headers=headers), 403)
    assert keys.delete(created["id"], project_id=project.id).deleted
    error_of(admin.http.get("/v1/files", headers=headers), 401)
    assert [key.owner_project_access for key in keys.list(project.id)] == ["inactive"]
    assert list(keys.list(project.id, owner_project_access="active")) == []
    assert len(list(keys.list(project.id, owner_project_access="inactive"))) == 1
    error_of(admin.http.get(f"{PROJECTS}/{project.id}/api_keys", params={"afte": "x"}), 400)


def test_keys_of_an_archived_project_are_refused_at_once(
    api: Api, sessions: sessionmaker[Session], admin: Member
) -> None:
    other = member(api, sessions)
    assert other.http.get("/v1/files").status_code == 200
    assert admin.http.post(f"{PROJECTS}/{other.project_id}/archive").status_code == 200
    assert "archived" in error_of(other.http.get("/v1/files"), 401)["message"]
    refusal = admin.http.post(f"{PROJECTS}/{other.project_id}/api_keys", json={"name": "k"})
    assert error_of(refusal, 400)["code"] == "project_archived"


def test_an_ordinary_key_sees_its_own_project_and_changes_none(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    own = http.get(PROJECTS).json()["data"]
    assert len(own) == 1
    for path, body in (
        ("", {"name": "n"}),
        (f"/{own[0]['id']}", {"name": "n"}),
        (f"/{own[0]['id']}/archive", {}),
        (f"/{own[0]['id']}/limits", {"live_jobs": 9}),
    ):
        error = error_of(http.post(f"{PROJECTS}{path}", json=body), 403)
        assert error["code"] == "insufficient_scope" and "'admin'" in error["message"]
    assert http.get(f"{PROJECTS}/{own[0]['id']}/limits").status_code == 200
    other = member(api, sessions)
    error_of(http.get(f"{PROJECTS}/{other.project_id}"), 404)


def test_an_admin_key_reaches_no_projects_things(admin: Member) -> None:
    for path in ("files", "fine_tuning/jobs", "models"):
        error_of(admin.http.get(f"/v1/{path}"), 403)


def test_only_an_admin_key_makes_or_ends_one(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    keys = "/v1/organization/api_keys"
    error_of(http.post(keys, json={"name": "k", "scopes": ["admin"]}), 403)
    own = http.get(PROJECTS).json()["data"][0]["id"]
    boss = member(api, sessions, "admin", project_id=own)
    key_id = next(k["id"] for k in http.get(keys).json()["data"] if "admin" in k["scopes"])
    assert "admin" in error_of(http.delete(f"{keys}/{key_id}"), 403)["message"]
    path = f"{PROJECTS}/{own}/api_keys/{key_id}"
    error_of(http.post(path, json={"scopes": ["read"]}), 403)
    assert boss.http.delete(f"{keys}/{key_id}").status_code == 200
    error_of(boss.http.get(keys), 401)


def test_an_ended_key_stays_ended(http: httpx.Client, sessions: sessionmaker[Session]) -> None:
    made = http.post("/v1/organization/api_keys", json={"name": "k"}).json()
    with sessions() as session:
        project_id = session.get_one(ApiKey, made["id"]).project_id
    path = f"{PROJECTS}/{project_id}/api_keys/{made['id']}"
    assert http.post(path, json={"expires_in_seconds": 60}).json()["expires_at"] is not None
    assert http.delete(path).status_code == 200
    again = http.post(path, json={"expires_in_seconds": 60})
    assert error_of(again, 400)["code"] == "api_key_ended"


def test_limits_of_a_project(admin: Member, http: httpx.Client) -> None:
    own = http.get(PROJECTS).json()["data"][0]["id"]
    path = f"{PROJECTS}/{own}/limits"
    changed = admin.http.post(path, json={"live_jobs": 2, "stored_bytes": "unlimited"}).json()
    assert changed["limits"]["live_jobs"] == {"limit": 2, "set_by": "project", "used": 0}
    assert changed["limits"]["stored_bytes"] == {"limit": None, "set_by": "project", "used": 0}
    assert changed["limits"]["gpu_seconds"] == {"limit": None, "set_by": "server", "used": 0}
    back = admin.http.post(path, json={"live_jobs": "default"}).json()
    assert back["limits"]["live_jobs"]["set_by"] == "server"
    assert http.get(path).json() == back
    for body in ({"live_job": 2}, {"live_jobs": -1}, {"live_jobs": "many"}, {"live_jobs": True}):
        error_of(admin.http.post(path, json=body), 400)


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("OpenAI-Organization", "org-other", "mismatched_organization"),
        ("OpenAI-Project", "proj_other", "mismatched_project"),
    ],
)
def test_headers_that_name_somebody_else(
    http: httpx.Client, header: str, value: str, code: str
) -> None:
    error = error_of(http.get("/v1/files", headers={header: value}), 401)
    assert error["code"] == code and header in error["message"]


def test_headers_that_name_the_keys_own(http: httpx.Client) -> None:
    project = http.get(PROJECTS).json()["data"][0]
    for headers in (
        {"OpenAI-Organization": "org-rft", "OpenAI-Project": project["id"]},
        {"OpenAI-Project": project["name"]},
        {"OpenAI-Organization": "", "OpenAI-Project": ""},
    ):
        answer = http.get("/v1/files", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["openai-organization"] == "org-rft"
        assert answer.headers["openai-project"] == project["id"]


def test_projects_are_listed_in_pages_that_inserts_do_not_move(admin: Member) -> None:
    made = [admin.http.post(PROJECTS, json={"name": str(n)}).json()["id"] for n in range(4)]
    first = admin.http.get(PROJECTS, params={"limit": 2}).json()
    assert [each["id"] for each in first["data"]] == made[:1:-1]
    admin.http.post(PROJECTS, json={"name": "late"})
    rest = admin.http.get(PROJECTS, params={"after": first["last_id"], "limit": 2}).json()
    assert [each["id"] for each in rest["data"]] == made[1::-1]
