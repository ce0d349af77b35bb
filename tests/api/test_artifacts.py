"""Weights of a checkpoint: listed with sizes and hashes, downloaded whole or in part, merged."""

import hashlib
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core import manifest
from core.artifacts import merged_prefix
from core.models import Checkpoint, Outbox
from tests.api.examples import add_checkpoint, error_of, job_body, upload
from tests.fakes.memory_store import MemoryStore

WEIGHTS = bytes(range(256)) * 8


@pytest.fixture
def checkpoint(
    client: openai.OpenAI,
    sessions: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
) -> Checkpoint:
    """A stored adapter."""
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    made = add_checkpoint(sessions, job.id, 8, name="ft:mine")
    with sessions() as session:
        row = session.get_one(Checkpoint, made)
    commit(store, row.object_prefix, tmp_path / "model")
    return row


def commit(store: MemoryStore, prefix: str, folder: Path) -> None:
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(WEIGHTS)
    manifest.commit(store, prefix, folder)


def place(checkpoint: Checkpoint) -> str:
    return f"/v1/fine_tuning/jobs/{checkpoint.job_id}/checkpoints/{checkpoint.id}/artifacts"


def read(http: httpx.Client, path: str) -> dict[str, Any]:
    answer = http.get(path)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_files_are_listed_as_their_manifest_has_them(
    http: httpx.Client, checkpoint: Checkpoint
) -> None:
    body = read(http, place(checkpoint))
    config, weights = body["data"]
    assert (config["path"], config["bytes"]) == ("adapter_config.json", 2)
    assert weights["sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    assert (weights["form"], weights["presigned_url"]) == ("adapter", None)
    assert body["merged"] == {"status": "not_requested", "since": None, "error": None}
    assert http.get(weights["url"]).content == WEIGHTS


def test_a_download_goes_on_where_it_stopped(http: httpx.Client, checkpoint: Checkpoint) -> None:
    url = f"{place(checkpoint)}/adapter/adapter_model.safetensors"
    part = http.get(url, headers={"range": "bytes=1000-"})
    assert (part.status_code, part.content) == (206, WEIGHTS[1000:])
    assert part.headers["content-range"] == f"bytes 1000-2047/{len(WEIGHTS)}"
    again = http.get(url, headers={"if-none-match": part.headers["etag"]})
    assert again.status_code == 304
    assert http.head(url).headers["content-length"] == str(len(WEIGHTS))


def test_presigned_addresses_expire(http: httpx.Client, checkpoint: Checkpoint) -> None:
    found = read(http, f"{place(checkpoint)}?expires_in=600")["data"][1]
    assert checkpoint.object_prefix in found["presigned_url"]
    assert "expires=600" in found["presigned_url"]
    assert found["presigned_expires_at"] > 1_700_000_000
    for wrong in ("59", "604801", "x"):
        error_of(http.get(f"{place(checkpoint)}?expires_in={wrong}"), 400)
    message = error_of(http.get(f"{place(checkpoint)}?expire_in=600"), 400)["message"]
    assert "Did you mean 'expires_in'?" in message


def test_merged_weights_are_asked_for_once(
    http: httpx.Client,
    checkpoint: Checkpoint,
    sessions: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
) -> None:
    url = f"{place(checkpoint)}/merged"
    error = error_of(http.get(f"{url}/model.safetensors"), 404)
    assert f"POST {url}" in error["message"]
    for _ in range(2):
        answer = http.post(url)
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    with sessions() as session:
        wakes = [row.payload for row in session.scalars(select(Outbox))]
    assert wakes.count({"queue": "train"}) == 1
    commit(store, merged_prefix(checkpoint.object_prefix), tmp_path / "merged")
    with sessions.begin() as session:
        session.execute(update(Checkpoint).values(merged_status="ready"))
    body = read(http, place(checkpoint))
    assert [each["form"] for each in body["data"]] == ["adapter", "adapter", "merged", "merged"]
    assert http.get(body["data"][3]["url"]).content == WEIGHTS
    assert http.post(url).json()["status"] == "ready"


def test_whole_weights_need_no_merging(
    http: httpx.Client, checkpoint: Checkpoint, sessions: sessionmaker[Session]
) -> None:
    with sessions.begin() as session:
        session.execute(update(Checkpoint).values(kind="full"))
    body = read(http, place(checkpoint))
    assert (body["data"][0]["form"], body["merged"]["status"]) == ("full", "not_applicable")
    assert error_of(http.post(f"{place(checkpoint)}/merged"), 400)["code"] == "not_an_adapter"


def test_only_what_a_manifest_names_is_served(
    http: httpx.Client, checkpoint: Checkpoint, store: MemoryStore
) -> None:
    store.put_bytes(f"{checkpoint.object_prefix}/stray", b"x")
    for path in ("adapter/stray", "adapter/manifest.json", "state/x", "adapter/..%2Fstray"):
        error = error_of(http.get(f"{place(checkpoint)}/{path}"), 404)
        assert error["code"] == "artifact_not_found"
    gone = f"/v1/fine_tuning/jobs/{checkpoint.job_id}/checkpoints/ftckpt_no/artifacts"
    assert error_of(http.get(gone), 404)["code"] == "checkpoint_not_found"
