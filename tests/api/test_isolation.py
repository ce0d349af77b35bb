"""Nobody sees, changes or uses what belongs to another project: every route is walked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.keys import create_key, create_project
from core.models import AuditEntry, Base
from tests.api.examples import error_of
from tests.api.running import Api
from tests.api.things import own_one_of_each

#: Routes that answer without a key.
OPEN = {"/health"}
#: Routes that need bytes in the object store, where nothing lies: what stands in their paths.
NEED_BYTES = ("/content", "/validation", "/stream", "{sample_id}", "/artifacts")
#: Placeholders that name nothing that a project owns.
NO_IDS = {"{form}", "{path:path}"}
#: What fills placeholders that are no ids.
NAMES = {"{form}": "adapter", "{path:path}": "adapter_config.json"}
PLACEHOLDER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Owner:
    """A project with one of everything, and a client with a key of it."""

    project_id: str
    ids: dict[str, str]
    http: httpx.Client


def owner(api: Api, sessions: sessionmaker[Session], name: str, *scopes: str) -> Owner:
    """Make a project with a key, and one of everything that it can own."""
    with sessions.begin() as session:
        project_id = create_project(session, name).id
        secret = create_key(session, project_id, "key", scopes=scopes or ("all",))[1]
        ids = own_one_of_each(session, project_id, f"ft:base-1:{name}:/x")
    headers = {"authorization": f"Bearer {secret}"}
    return Owner(project_id, ids, httpx.Client(base_url=api.url, headers=headers, timeout=30))


@pytest.fixture
def theirs(api: Api, sessions: sessionmaker[Session]) -> Iterator[Owner]:
    """The project whose things must stay its own."""
    made = owner(api, sessions, "theirs")
    yield made
    made.http.close()


@pytest.fixture
def mine(api: Api, sessions: sessionmaker[Session]) -> Iterator[Owner]:
    """The project that tries to reach them."""
    made = owner(api, sessions, "mine")
    yield made
    made.http.close()


def routes(api: Api) -> list[tuple[str, str]]:
    """Every method and path of the API."""
    found = [route for route in api.app.routes if isinstance(route, APIRoute)]
    return [(method, route.path) for route in found for method in sorted(route.methods)]


def placeholders(path: str) -> list[str]:
    """The placeholders in a route's path; each must be known to `own_one_of_each`."""
    return [name for name in PLACEHOLDER.findall(path) if name not in NAMES]


def ids(path: str) -> list[str]:
    """The placeholders that name something a project owns."""
    return [name for name in placeholders(path) if name not in NO_IDS]


def needs_bytes(path: str) -> bool:
    """Whether a route reads what no store holds here."""
    return any(part in path for part in NEED_BYTES)


def fill(path: str, *owners: Owner) -> str:
    """Put ids into a route's path: the first owner's, and the last one's for the last id."""
    last = ids(path)[-1] if ids(path) else None
    for name in placeholders(path):
        holder = owners[-1] if name == last else owners[0]
        known = f"let own_one_of_each in tests/api/things.py say what fills {name} of {path}"
        assert name in holder.ids, known
        path = path.replace(name, holder.ids[name].replace("/", "%2F"))
    for name, value in NAMES.items():
        path = path.replace(name, value)
    return path


def stored(sessions: sessionmaker[Session], project_id: str) -> dict[str, list[Any]]:
    """All rows of a project, and of the tables that name no project."""
    rows = {}
    with sessions() as session:
        for table in Base.metadata.sorted_tables:
            query = select(table).order_by(*table.primary_key)
            if "project_id" in table.c:
                query = query.where(table.c.project_id == project_id)
            rows[table.name] = [tuple(row) for row in session.execute(query)]
    return rows


def test_every_route_wants_a_key(api: Api, theirs: Owner) -> None:
    walked = routes(api)
    assert len(walked) >= 70
    theirs.http.headers.pop("authorization")
    for method, path in walked:
        if path not in OPEN:
            response = theirs.http.request(method, fill(path, theirs))
            assert response.status_code == 401, (method, path)
            assert method == "HEAD" or error_of(response, 401)["code"] == "invalid_api_key"


@pytest.mark.parametrize("scopes", [("all",), ("all", "admin")])
def test_every_route_with_an_id_finds_nothing_of_another_project(
    api: Api, theirs: Owner, sessions: sessionmaker[Session], scopes: tuple[str, ...]
) -> None:
    stranger = owner(api, sessions, "stranger", *scopes)
    before = stored(sessions, theirs.project_id)
    walked = 0
    for method, path in routes(api):
        if not placeholders(path) or (len(scopes) > 1 and "{project_id}" in path):
            continue
        refuse(stranger.http.request(method, fill(path, theirs)), method, path)
        walked += 1
    assert walked >= 40
    assert stored(sessions, theirs.project_id) == before


def test_nothing_of_another_project_is_found_below_what_is_ones_own(
    api: Api, theirs: Owner, mine: Owner, sessions: sessionmaker[Session]
) -> None:
    before = stored(sessions, theirs.project_id)
    walked = 0
    for method, path in routes(api):
        if len(ids(path)) > 1:
            refuse(mine.http.request(method, fill(path, mine, theirs)), method, path)
            walked += 1
    assert walked >= 8
    assert stored(sessions, theirs.project_id) == before


def refuse(response: httpx.Response, method: str, path: str) -> None:
    """Check that the answer is 404, and that it came from the route and not for its absence."""
    assert response.status_code == 404, (method, path, response.text)
    if method != "HEAD":
        assert error_of(response, 404)["code"] != "unknown_url", (method, path)


def test_the_owner_finds_all_of_it(api: Api, theirs: Owner) -> None:
    """The walk above proves nothing where the owner would find nothing either."""
    for method, path in routes(api):
        if method == "GET" and placeholders(path) and not needs_bytes(path):
            response = theirs.http.get(fill(path, theirs))
            assert response.status_code == 200, (path, response.text)


def test_every_list_is_empty_of_another_projects_things(
    api: Api, theirs: Owner, mine: Owner
) -> None:
    for method, path in routes(api):
        if method == "GET" and not placeholders(path) and path not in OPEN:
            text = mine.http.get(path).text
            for value in theirs.ids.values():
                assert value not in text, path


def test_a_cursor_of_another_project_leads_nowhere(api: Api, theirs: Owner, mine: Owner) -> None:
    walked = 0
    all_routes = routes(api)
    for method, path in all_routes:
        below = [each for _, each in all_routes if each.rpartition("/")[0] == path]
        children = [each.rpartition("/")[2] for each in below if each.endswith("}")]
        if method == "GET" and children and path != "/v1/models":
            after = theirs.ids[children[0]]
            response = mine.http.get(fill(path, mine), params={"after": after})
            assert response.json()["data"] == [], path
            walked += 1
    assert walked >= 8


def test_a_model_of_another_project_does_not_answer(theirs: Owner, mine: Owner) -> None:
    model = theirs.ids["{model:path}"]
    for path, body in (
        ("chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("completions", {"prompt": "Hi"}),
    ):
        response = mine.http.post(f"/v1/{path}", json={"model": model, **body})
        assert error_of(response, 404)["code"] == "model_not_found"


def test_what_is_refused_is_not_in_the_audit_log(
    api: Api, theirs: Owner, mine: Owner, sessions: sessionmaker[Session]
) -> None:
    for method, path in routes(api):
        if placeholders(path) and method != "GET":
            mine.http.request(method, fill(path, theirs))
    with sessions() as session:
        assert session.scalars(select(AuditEntry)).all() == []
