"""Merged weights are made once for who asks, and what goes wrong is told."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session, sessionmaker

from core import manifest
from core.artifacts import MERGE_TTL_S, claim_merge, merged_prefix, merges_wait, request_merge
from core.events import lock_job
from core.keys import create_project
from core.models import Checkpoint, Event, Job
from core.registry import Registry
from core.settings import Settings
from tests.fakes.memory_store import MemoryStore
from workers.context import Context
from workers.merging import _end, merge_waiting
from workers.serving import merging

PREFIX = "models/ftjob-1/1/model"
#: Instead of `python -m trainer.export BASE ADAPTER OUT`: joins one file of each.
JOIN = """
import pathlib, sys
base, adapter, out = map(pathlib.Path, sys.argv[1:])
out.mkdir()
(out / 'w').write_text((base / 'w').read_text() + (adapter / 'w').read_text())
"""


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def context(
    settings: Settings,
    factory: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Context]:
    """A job with a stored adapter whose merged weights were asked for."""
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", JOIN))
    for name, content in (("base", "base+"), ("adapter", "adapter")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w").write_text(content)
    (tmp_path / "base" / "config.json").write_text("{}")
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nid = "m"\npath = "base"\ncontext_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    manifest.commit(store, PREFIX, tmp_path / "adapter")
    with factory.begin() as session:
        project_id = create_project(session, "p").id
        values = {"project_id": project_id, "model": "m", "method": {}, "training_file": "f"}
        session.add(Job(id="ftjob-1", seed=1, **values))
        session.flush()
        row = Checkpoint(
            job_id="ftjob-1",
            project_id=project_id,
            phase="export",
            step=4,
            name="ft:m",
            object_prefix=PREFIX,
            kind="adapter",
            metrics={},
            is_final=True,
            has_state=False,
        )
        session.add(row)
        session.flush()
        request_merge(session, row)
    yield Context(settings, factory, store, Registry.load(models))


def checkpoint(context: Context) -> Checkpoint:
    with context.sessions() as session:
        return session.scalars(select(Checkpoint)).one()


def messages(context: Context) -> list[str]:
    with context.sessions() as session:
        return list(session.scalars(select(Event.message)))


def test_the_adapter_is_folded_in_and_committed(context: Context, store: MemoryStore) -> None:
    assert merge_waiting(context) == [checkpoint(context).id]
    assert checkpoint(context).merged_status == "ready"
    prefix = merged_prefix(PREFIX)
    assert [entry.path for entry in manifest.read(store, prefix).files] == ["w"]
    assert store.objects[f"{prefix}/w"] == b"base+adapter"
    assert messages(context) == ["The merged weights of step 4 are ready for download"]
    assert merge_waiting(context) == []
    assert not list((context.settings.data_dir / "merging").iterdir())


def test_a_merge_that_fails_says_why_and_can_be_asked_for_again(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "EXPORT", (sys.executable, "-c", "raise SystemExit(3)"))
    merge_waiting(context)
    failed = checkpoint(context)
    assert failed.merged_status == "failed" and "exit" in str(failed.merged_error)
    assert messages(context)[0].startswith("Merging the weights of step 4 failed")
    with context.sessions.begin() as session:
        request_merge(session, session.scalars(select(Checkpoint)).one())
        assert session.scalar(select(merges_wait()))


def test_a_missing_adapter_is_a_failure_and_a_store_that_is_down_is_not(
    context: Context, store: MemoryStore
) -> None:
    store.down = True
    merge_waiting(context)
    assert checkpoint(context).merged_status == "queued"
    store.down = False
    store.delete(f"{PREFIX}/manifest.json")
    merge_waiting(context)
    assert checkpoint(context).merged_status == "failed"


def test_a_merge_that_a_worker_died_with_is_taken_up_again(context: Context) -> None:
    for age_s, done in ((MERGE_TTL_S - 60, 0), (MERGE_TTL_S + 60, 1)):
        with context.sessions.begin() as session:
            then = Checkpoint.merged_at - age_s
            session.execute(update(Checkpoint).values(merged_status="running", merged_at=then))
        assert len(merge_waiting(context)) == done
        with context.sessions.begin() as session:
            then = Checkpoint.merged_at + age_s
            session.execute(update(Checkpoint).values(merged_at=then))


def test_a_checkpoint_that_was_deleted_is_not_merged(context: Context, store: MemoryStore) -> None:
    with context.sessions.begin() as session:
        session.execute(update(Checkpoint).values(deleted_at=1))
    assert merge_waiting(context) == []
    assert not [key for key in store.objects if "merged" in key]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_the_end_of_a_merge_waits_for_the_jobs_holder_with_no_row_in_its_hands(
    context: Context, factory: sessionmaker[Session]
) -> None:
    """The holder has the job and writes checkpoints; the other way round would be a deadlock."""
    with factory.begin() as session:
        checkpoint = claim_merge(session)
    assert checkpoint is not None
    with factory.begin() as session:
        lock_job(session, checkpoint.job_id)
        ending = threading.Thread(target=_end, args=(context, checkpoint, "ready"))
        ending.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not session.scalar(waiting):
            time.sleep(0.01)
        session.execute(text("SET LOCAL lock_timeout = '2s'"))
        session.execute(update(Checkpoint).values(has_state=False))
    ending.join(20)
    with factory() as session:
        assert session.scalars(select(Checkpoint.merged_status)).one() == "ready"
