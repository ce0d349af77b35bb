"""Checkpoint permissions: another project uses a model as its own, until this is taken back."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import Job
from core.permissions import usable_by
from tests.api.access import Member, member
from tests.api.examples import add_checkpoint, error_of, job_body, set_status, upload
from tests.api.running import Api, ClientFor
from tests.fakes.model_server import ModelServer

MODEL = "ft:base-1:org-rft:a/b:Zz9"
ENCODED = MODEL.replace("/", "%2F")


@dataclass(frozen=True)
class Shared:
    """A model of the default project's job."""

    job_id: str
    client: openai.OpenAI

    @property
    def permissions(self) -> openai.resources.fine_tuning.checkpoints.Permissions:
        return self.client.fine_tuning.checkpoints.permissions


@pytest.fixture
def model(client: openai.OpenAI, sessions: sessionmaker[Session]) -> Shared:
    """A trained model whose name holds ':' and '/'."""
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 8, name=MODEL, final=True)
    with sessions.begin() as session:
        session.get_one(Job, job.id).hyperparameters = {"lora_rank": 8}
    set_status(sessions, job.id, "succeeded")
    return Shared(job.id, client)


@pytest.fixture
def grantee(api: Api, sessions: sessionmaker[Session]) -> Iterator[Member]:
    """Another project."""
    made = member(api, sessions)
    yield made
    made.http.close()


def chat(who: Member) -> httpx.Response:
    """Ask the model something."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
    return who.http.post("/v1/chat/completions", json=body)


@pytest.mark.parametrize("by_job", [False, True])
def test_the_official_client_shares_a_model(model: Shared, grantee: Member, by_job: bool) -> None:
    name = model.job_id if by_job else MODEL
    made = list(model.permissions.create(name, project_ids=[grantee.project_id]))
    assert [each.project_id for each in made] == [grantee.project_id]
    again = list(model.permissions.create(name, project_ids=[grantee.project_id]))
    assert again == made
    assert [each.id for each in model.permissions.list(name)] == [made[0].id]
    assert list(model.permissions.list(name, project_id="proj_none")) == []
    deleted = model.permissions.delete(made[0].id, fine_tuned_model_checkpoint=name)
    assert deleted.id == made[0].id and deleted.deleted
    assert list(model.permissions.list(name)) == []


def test_whoever_may_use_a_model_lists_retrieves_and_asks_it(
    model: Shared, grantee: Member, model_server: ModelServer
) -> None:
    error_of(chat(grantee), 404)
    permission = next(iter(model.permissions.create(MODEL, project_ids=[grantee.project_id])))
    assert MODEL in [each["id"] for each in grantee.http.get("/v1/models").json()["data"]]
    assert grantee.http.get(f"/v1/models/{ENCODED}").json()["id"] == MODEL
    assert chat(grantee).status_code == 200
    assert model_server.requests
    model.permissions.delete(permission.id, fine_tuned_model_checkpoint=MODEL)
    error_of(chat(grantee), 404)
    error_of(grantee.http.get(f"/v1/models/{ENCODED}"), 404)
    assert MODEL not in grantee.http.get("/v1/models").text


def test_whoever_may_use_a_model_trains_from_it_and_does_not_delete_it(
    model: Shared, grantee: Member, client_for: ClientFor, sessions: sessionmaker[Session]
) -> None:
    permission = next(iter(model.permissions.create(MODEL, project_ids=[grantee.project_id])))
    file = upload(client_for(grantee.key))
    job = grantee.http.post("/v1/fine_tuning/jobs", json=job_body(file.id, model=MODEL)).json()
    assert job["model"] == MODEL
    refusal = error_of(grantee.http.delete(f"/v1/models/{ENCODED}"), 403)
    assert refusal["code"] == "model_not_owned"
    with pytest.raises(openai.BadRequestError) as in_use:
        model.client.models.delete(MODEL)
    assert in_use.value.code == "model_in_use" and job["id"] not in str(in_use.value)
    path = f"/v1/fine_tuning/checkpoints/{ENCODED}/permissions"
    error_of(grantee.http.post(path, json={"project_ids": [grantee.project_id]}), 404)
    with sessions() as session:
        assert usable_by(session, grantee.project_id, MODEL) is not None
    # Nobody keeps a model from its owner's deletion by a job that never ends.
    model.permissions.delete(permission.id, fine_tuned_model_checkpoint=MODEL)
    assert model.client.models.delete(MODEL).deleted


def test_a_deleted_model_is_shared_no_more(
    model: Shared, grantee: Member, sessions: sessionmaker[Session]
) -> None:
    model.permissions.create(MODEL, project_ids=[grantee.project_id])
    model.client.models.delete(MODEL)
    error_of(chat(grantee), 404)
    with sessions() as session:
        assert usable_by(session, grantee.project_id, MODEL) is None


def test_projects_that_cannot_be_named(
    model: Shared, grantee: Member, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    path = f"/v1/fine_tuning/checkpoints/{ENCODED}/permissions"
    body = {"project_ids": [grantee.project_id, "proj_none", "proj_nil"]}
    error = error_of(http.post(path, json=body), 400)
    assert error["param"] == "project_ids"
    assert "proj_none, proj_nil" in error["message"] and grantee.project_id not in error["message"]
    assert http.get(path).json()["data"] == []
    with sessions() as session:
        own = session.get_one(Job, model.job_id).project_id
    assert (
        "needs no permission"
        in error_of(http.post(path, json={"project_ids": [own]}), 400)["message"]
    )
    error_of(http.post(path, json={"project_ids": []}), 400)


def test_pages_and_their_order(
    model: Shared, api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    projects = [member(api, sessions).project_id for _ in range(3)]
    for each in projects:
        model.permissions.create(MODEL, project_ids=[each])
    path = f"/v1/fine_tuning/checkpoints/{ENCODED}/permissions"
    for order, expected in (("ascending", projects), ("descending", projects[::-1])):
        first = http.get(path, params={"order": order, "limit": 2}).json()
        model.permissions.create(MODEL, project_ids=[member(api, sessions).project_id])
        rest = http.get(path, params={"order": order, "after": first["last_id"], "limit": 1}).json()
        assert [each["project_id"] for each in [*first["data"], *rest["data"]]] == expected
        newest = http.get(path, params={"limit": 1}).json()["data"][0]["id"]
        http.delete(f"{path}/{newest}")
    for permission in model.permissions.list(MODEL, limit=1):
        model.permissions.delete(permission.id, fine_tuned_model_checkpoint=MODEL)
    assert http.get(path).json()["data"] == []
    assert http.get(path, params={"limit": 0, "after": "after"}).json()["data"] == []
    assert error_of(http.get(path, params={"order": "asc"}), 400)["param"] == "order"
