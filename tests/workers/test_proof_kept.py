"""What the serving service is to be asked for is kept beside the final model's files."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from core import manifest, serving_proofs
from core.db import make_engine, session_factory
from core.fenced import FencedWriter
from core.keys import create_project
from core.models import Checkpoint, Job
from core.registry import Registry
from core.settings import Settings
from tests.fakes.memory_store import MemoryStore
from workers.context import Context
from workers.proving import expected
from workers.supervisor.checkpoints import CheckpointStore
from workers.supervisor.protocol import CheckpointWritten

ROWS = [{"prompt": [1], "completion": [2], "logprobs": [-0.5]}]
FINAL: dict[str, Any] = {
    "type": "checkpoint",
    "phase": "export",
    "step": 4,
    "path": "out/checkpoints/final",
    "kind": "adapter",
    "final": True,
    "state": False,
    "metrics": {},
    "trained_tokens": 1,
    "proof": {"max_difference": 1e-6},
}


def stored(settings: Settings, folder: Path, **changes: Any) -> tuple[Checkpoint, MemoryStore]:
    """The row and the objects of a final checkpoint that a trainer wrote."""
    sessions, store = session_factory(make_engine(settings.database_url)), MemoryStore()
    with sessions.begin() as session:
        project_id = create_project(session, "p").id
        values = {"project_id": project_id, "model": "m", "method": {}, "training_file": "f"}
        session.add(Job(id="ftjob-1", seed=1, status="running", **values))
    (folder / FINAL["path"] / "model").mkdir(parents=True)
    (folder / FINAL["path"] / "model" / "w").write_text("weights")
    (folder / FINAL["path"] / "proof.json").write_text(json.dumps(ROWS))
    context = Context(settings, sessions, store, Registry([], source=folder))
    with sessions() as session:
        job = session.get_one(Job, "ftjob-1")
    writer = FencedWriter(sessions, "ftjob-1", 0)
    checkpoints = CheckpointStore(context, job, writer, folder, lambda _path: None)
    checkpoints.store(CheckpointWritten.model_validate({**FINAL, **changes}))
    with sessions() as session:
        return session.scalars(select(Checkpoint)).one(), store


def test_the_trainer_s_numbers_lie_with_the_model_and_are_no_part_of_it(
    settings: Settings, tmp_path: Path
) -> None:
    row, store = stored(settings, tmp_path)
    [read] = expected.read(store, row.object_prefix, context_tokens=8)
    assert read.model_dump() == ROWS[0]
    assert [entry.path for entry in manifest.read(store, row.object_prefix).files] == ["w"]
    assert row.proof == {"max_difference": 1e-6, "serving": serving_proofs.BEGINNING}
    assert row.serving_due_at is not None
    store.delete_prefix(row.object_prefix)
    assert not store.objects


@pytest.mark.parametrize(
    ("serving_proof", "changes"), [(False, {}), (True, {"proof": None}), (True, {"final": False})]
)
def test_nothing_is_asked_where_it_is_not_wanted_or_not_proved(
    settings: Settings, tmp_path: Path, serving_proof: bool, changes: dict[str, Any]
) -> None:
    settings = settings.model_copy(update={"serving_proof": serving_proof})
    row, store = stored(settings, tmp_path, **changes)
    assert row.serving_due_at is None
    assert "serving" not in (row.proof or {})
    assert expected.key(row.object_prefix) not in store.objects
