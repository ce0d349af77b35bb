"""Models: names with slashes, aliases, and what may be deleted."""

from pathlib import Path

import httpx
import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from api.services import models
from core.models import Checkpoint
from core.settings import Settings
from tests.api.examples import add_checkpoint, error_of, job_body, jsonl, set_status
from tests.api.running import Api
from tests.fakes.memory_store import MemoryStore

NAME = "ft:lab/base-2:org-rft:s:a1b2c3d4"


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """A list of models with one whose name has a slash."""
    models = tmp_path / "models.toml"
    more = '[[models]]\nid = "lab/base-2"\npath = "b"\naliases = ["lab/two"]\ncontext_tokens = 8\n'
    models.write_text(f'{models.read_text()}\n{more}owned_by = "lab"\ncreated = 1700000001\n')
    return settings


@pytest.fixture
def trained(http: httpx.Client, sessions: sessionmaker[Session]) -> str:
    """A trained model whose job has ended."""
    form = {"purpose": "fine-tune"}
    file = http.post("/v1/files", files={"file": ("a.jsonl", jsonl())}, data=form).json()
    job = http.post("/v1/fine_tuning/jobs", json=job_body(file["id"], model="lab/two")).json()
    add_checkpoint(sessions, job["id"], 4, name=NAME)
    set_status(sessions, job["id"], "succeeded")
    return NAME


@pytest.mark.parametrize("slash", ["/", "%2F"])
def test_names_with_slashes(http: httpx.Client, trained: str, slash: str) -> None:
    for name, shown in (
        ("lab/base-2", "lab/base-2"),
        ("lab/two", "lab/base-2"),
        (trained, trained),
    ):
        answer = http.get(f"/v1/models/{name.replace('/', slash)}")
        assert (answer.status_code, answer.json()["id"]) == (200, shown)
    body = {"model": trained, "messages": [{"role": "user", "content": "Hi"}]}
    assert http.post("/v1/chat/completions", json=body).json()["model"] == trained
    assert http.delete(f"/v1/models/{trained.replace('/', slash)}").json() == {
        "id": trained,
        "object": "model",
        "deleted": True,
    }
    assert error_of(http.get(f"/v1/models/{trained}"), 404)["code"] == "model_not_found"
    for path in ("/v1/chat/completions", "/v1/completions"):
        asked = {"model": trained} | ({"prompt": "a"} if "chat" not in path else body)
        assert error_of(http.post(path, json=asked), 404)["code"] == "model_not_found"
    listed = {model["id"] for model in http.get("/v1/models").json()["data"]}
    assert listed == {"base-1-2024", "lab/base-2"}


@pytest.mark.parametrize("name", ["base-1-2024", "base-1", "lab%2Fbase-2", "lab/two"])
def test_base_models_are_the_operators(http: httpx.Client, name: str) -> None:
    error = error_of(http.delete(f"/v1/models/{name}"), 403)
    assert error["code"] == "base_model"
    assert "models.toml" in error["message"]


def test_a_model_that_nobody_knows_cannot_be_deleted(http: httpx.Client) -> None:
    error = error_of(http.delete("/v1/models/ft:nope"), 404)
    assert (error["param"], error["code"]) == ("model", "model_not_found")


def test_what_a_live_job_needs_stays(
    http: httpx.Client, sessions: sessionmaker[Session], trained: str
) -> None:
    form = {"purpose": "fine-tune"}
    file = http.post("/v1/files", files={"file": ("a.jsonl", jsonl())}, data=form).json()
    job = http.post("/v1/fine_tuning/jobs", json=job_body(file["id"], model=trained)).json()
    error = error_of(http.delete(f"/v1/models/{trained}"), 400)
    assert error["code"] == "model_in_use" and job["id"] in error["message"]
    set_status(sessions, job["id"], "cancelled")
    assert http.delete(f"/v1/models/{trained}").status_code == 200


def test_deleting_leaves_nothing_behind_in_the_store(
    http: httpx.Client, sessions: sessionmaker[Session], store: MemoryStore, trained: str
) -> None:
    root = "jobs/deleted/checkpoints/4/1"
    with sessions.begin() as session:
        session.execute(
            update(Checkpoint).values(object_prefix=f"{root}/model", merged_status="ready")
        )
    for part in ("model/manifest.json", "model/weights", "state/optimizer", "merged/weights"):
        store.put_bytes(f"{root}/{part}", b"x")
    store.put_bytes("jobs/deleted/checkpoints/4/10/model/weights", b"another's")
    assert http.delete(f"/v1/models/{trained}").status_code == 200
    assert [key for key in store.objects if "deleted" in key] == [
        "jobs/deleted/checkpoints/4/10/model/weights"
    ]
    with sessions() as session:
        [row] = session.scalars(select(Checkpoint))
    assert (row.has_state, row.merged_status) == (False, None)


def test_no_transaction_is_open_while_the_store_deletes(
    api: Api, http: httpx.Client, store: MemoryStore, trained: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = api.app.state.parts.sessions.kw["bind"].pool
    held: list[int] = []

    def delete_prefix(_prefix: str) -> int:
        held.append(pool.checkedout())
        return 0

    monkeypatch.setattr(store, "delete_prefix", delete_prefix)
    assert http.delete(f"/v1/models/{trained}").status_code == 200
    assert set(held) == {0}


def test_a_store_that_fails_leaves_the_model(
    http: httpx.Client, store: MemoryStore, trained: str
) -> None:
    store.down = True
    assert http.delete(f"/v1/models/{trained}").status_code == 503
    store.down = False
    assert http.get(f"/v1/models/{trained}").status_code == 200


def test_an_unknown_name_is_compared_with_the_newest_models_only(
    http: httpx.Client,
    sessions: sessionmaker[Session],
    trained: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "NEAREST_AMONG", 1)
    job_id = http.get("/v1/fine_tuning/jobs").json()["data"][0]["id"]
    add_checkpoint(sessions, job_id, 5, name="ft:" + 40 * "z")
    for typed, said in (
        ("ft:" + 39 * "z", "Did you mean 'ft:zz"),
        (trained[:-1], "GET /v1/models lists them."),
    ):
        assert said in error_of(http.get(f"/v1/models/{typed}"), 404)["message"]
