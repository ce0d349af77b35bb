"""Nobody sees, changes or uses what belongs to another project: every route is walked."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import openai
import pytest
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session, sessionmaker

from tests.api.examples import GRADER, add_checkpoint, error_of, job_body, jsonl, set_status, upload
from tests.api.running import Api

#: Routes that answer without a key.
OPEN = {"/health"}


@dataclass(frozen=True)
class Theirs:
    """What another project owns."""

    file_id: str
    job_id: str
    model: str
    key_id: str
    dry_run_id: str

    def fill(self, path: str) -> str:
        """Put the other project's ids into a route's path."""
        for placeholder, value in (
            ("{file_id}", self.file_id),
            ("{fine_tuning_job_id}", self.job_id),
            ("{model:path}", self.model),
            ("{key_id}", self.key_id),
            ("{dry_run_id}", self.dry_run_id),
        ):
            path = path.replace(placeholder, value)
        assert "{" not in path, f"tell this test what fills {path}"
        return path


@pytest.fixture
def theirs(client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]) -> Theirs:
    """The default project's things; the tests come with another project's key."""
    file = upload(client)
    job = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, job.id, 8, name="ft:theirs")
    key = http.post("/v1/organization/api_keys", json={"name": "k"}).json()
    dry_run = http.post(
        "/v1/fine_tuning/dry_runs",
        json={"model": "base-1", "training_file": file.id, "grader": GRADER},
    ).json()
    return Theirs(
        file_id=file.id,
        job_id=job.id,
        model="ft:theirs",
        key_id=key["id"],
        dry_run_id=dry_run["id"],
    )


def routes(api: Api) -> list[tuple[str, str]]:
    """Every method and path of the API."""
    found = [route for route in api.app.routes if isinstance(route, APIRoute)]
    return [(method, route.path) for route in found for method in sorted(route.methods)]


def test_every_route_wants_a_key(api: Api, theirs: Theirs) -> None:
    walked = routes(api)
    assert len(walked) >= 29
    for method, path in walked:
        if path not in OPEN:
            error_of(httpx.request(method, api.url + theirs.fill(path)), 401)


def test_every_route_with_an_id_finds_nothing_of_another_project(
    api: Api, theirs: Theirs, new_key: Callable[..., str]
) -> None:
    headers = {"authorization": f"Bearer {new_key()}"}
    walked = 0
    for method, path in routes(api):
        if "{" in path:
            response = httpx.request(method, api.url + theirs.fill(path), headers=headers)
            message = error_of(response, 404)["message"]
            assert "unknown_url" not in response.text, f"{path} was not reached: {message}"
            walked += 1
    assert walked >= 16
    with httpx.Client(base_url=api.url, headers={"authorization": f"Bearer {api.key}"}) as owner:
        job = owner.get(f"/v1/fine_tuning/jobs/{theirs.job_id}").json()
        assert job["status"] == "validating_files"
        dry_run = owner.get(f"/v1/fine_tuning/dry_runs/{theirs.dry_run_id}").json()
        assert dry_run["status"] == "validating_files"
        assert owner.get(f"/v1/files/{theirs.file_id}/content").content == jsonl()
        assert owner.get(f"/v1/models/{theirs.model}").status_code == 200
        key = owner.get(f"/v1/organization/api_keys/{theirs.key_id}").json()
        assert key["revoked_at"] is None


def test_every_list_is_empty_of_another_projects_things(
    api: Api, theirs: Theirs, new_key: Callable[..., str]
) -> None:
    headers = {"authorization": f"Bearer {new_key()}"}
    for method, path in routes(api):
        if method == "GET" and "{" not in path and path not in OPEN:
            text = httpx.get(api.url + path, headers=headers).text
            for value in (theirs.file_id, theirs.job_id, theirs.model, theirs.key_id):
                assert value not in text
            assert theirs.dry_run_id not in text


def test_a_cursor_of_another_project_leads_nowhere(
    api: Api, theirs: Theirs, new_key: Callable[..., str]
) -> None:
    headers = {"authorization": f"Bearer {new_key()}"}
    for path, after in (
        ("files", theirs.file_id),
        ("fine_tuning/jobs", theirs.job_id),
        ("fine_tuning/dry_runs", theirs.dry_run_id),
    ):
        response = httpx.get(f"{api.url}/v1/{path}", params={"after": after}, headers=headers)
        assert response.json()["data"] == []


def test_a_model_of_another_project_does_not_answer(
    api: Api, theirs: Theirs, new_key: Callable[..., str], sessions: sessionmaker[Session]
) -> None:
    set_status(sessions, theirs.job_id, "succeeded")
    body = {"model": theirs.model, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {new_key()}"}
    response = httpx.post(f"{api.url}/v1/chat/completions", json=body, headers=headers)
    assert error_of(response, 404)["code"] == "model_not_found"
