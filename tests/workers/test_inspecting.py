"""Training files that no API process inspected: a worker does, once, and none waits for ever."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core import file_reports
from core.clock import now
from core.inspection import apart
from core.inspection.settle import OVERDUE_S
from core.keys import create_project
from core.models import File, Project
from core.registry import Registry
from core.settings import Settings
from tests.fakes.memory_store import MemoryStore
from workers import inspecting
from workers.cleaning import clean_once
from workers.context import Context
from workers.inspecting import GIVE_UP_S, RETRY_S, inspect_overdue

ROWS = b'{"messages": [{"role": "user", "content": "1+1?"}]}\n'


def upload(context: Context, name: str, content: bytes, *, due_s: int = 0, age_s: int = 0) -> None:
    """A file of this age that has been due for so many seconds."""
    with context.sessions.begin() as session:
        session.add(
            File(
                id=name,
                project_id=session.scalar(select(Project.id)),
                filename=name,
                purpose="fine-tune",
                bytes=len(content),
                sha256=context.store.put_bytes(f"files/{name}", content),
                object_key=f"files/{name}",
                status="uploaded",
                created_at=now() - age_s,
                inspect_after=now() - due_s,
            )
        )


def file(context: Context, name: str) -> File:
    with context.sessions() as session:
        return session.get_one(File, name)


def make_due(context: Context, name: str, *, in_s: int) -> None:
    """Let so many seconds pass for a file."""
    with context.sessions.begin() as session:
        row = session.get_one(File, name)
        assert row.inspect_after is not None
        row.inspect_after -= in_s


def test_a_file_whose_inspection_was_lost_is_inspected(context: Context) -> None:
    upload(context, "good", ROWS, due_s=60)
    upload(context, "bad", b"[]\n")
    upload(context, "new", b"[]\n", due_s=-60)
    clean_once(context)
    good, bad, new = (file(context, name) for name in ("good", "bad", "new"))
    assert (good.status, bad.status, new.status) == ("processed", "error", "uploaded")
    assert bad.status_details is not None and "Line 1 is not" in bad.status_details
    with context.sessions() as session:
        kept = file_reports.find(session, good.sha256, "reinforcement")
    assert kept is not None and kept.ok


def test_a_store_that_is_down_is_asked_again(context: Context, store: MemoryStore) -> None:
    upload(context, "a", ROWS)
    store.down = True
    inspect_overdue(context)
    store.down = False
    inspect_overdue(context)
    assert file(context, "a").status == "uploaded"
    make_due(context, "a", in_s=RETRY_S)
    inspect_overdue(context)
    assert file(context, "a").status == "processed"


def test_a_file_without_bytes_ends_and_holds_up_no_other(
    context: Context, store: MemoryStore
) -> None:
    upload(context, "gone", ROWS, due_s=60)
    upload(context, "good", ROWS)
    store.delete("files/gone")
    inspect_overdue(context)
    gone = file(context, "gone")
    assert (gone.status, gone.status_details) == ("error", "Its stored bytes are gone.")
    assert file(context, "good").status == "processed"


def test_a_file_on_which_the_process_dies_ends_too(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(context, "deadly", ROWS, due_s=60)
    upload(context, "old", ROWS, age_s=GIVE_UP_S)
    monkeypatch.setattr(apart, "SMALL_BYTES", 0)
    monkeypatch.setattr("sys.executable", "/bin/false")
    inspect_overdue(context)
    assert file(context, "deadly").status == "uploaded"
    assert file(context, "old").status == "error"
    monkeypatch.undo()
    inspect_overdue(context)
    assert file(context, "deadly").status == "uploaded"
    make_due(context, "deadly", in_s=OVERDUE_S)
    inspect_overdue(context)
    assert file(context, "deadly").status == "processed"


def test_a_file_whose_rows_take_too_long_ends(
    context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    upload(context, "tiny", b"{}\n")
    hasty = tmp_path / "hasty"
    hasty.write_text(f"#!/bin/sh\nexit {apart.TOO_SLOW}\n")
    hasty.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(hasty))
    monkeypatch.setattr(apart, "SMALL_BYTES", 0)
    inspect_overdue(context)
    tiny = file(context, "tiny")
    assert tiny.status == "error"
    assert tiny.status_details is not None and "take too long" in tiny.status_details


def test_a_file_that_one_worker_inspects_no_other_takes(
    context: Context, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(context, "a", ROWS)
    upload(context, "b", ROWS)
    taken = []
    read = store.iter

    def meanwhile(key: str) -> Iterator[bytes]:
        # A second thread of this worker leaves all files to the first, another worker takes others.
        inspect_overdue(context)
        taken.append((key, inspecting._take(context)))
        return read(key)

    monkeypatch.setattr(store, "iter", meanwhile)
    inspect_overdue(context)
    [(key, other)] = taken
    assert key == "files/a" and other is not None and other.id == "b"
    assert (file(context, "a").status, file(context, "b").status) == ("processed", "uploaded")


def test_of_workers_that_look_at_once_each_takes_another_file(
    factory: sessionmaker[Session], settings: Settings, store: MemoryStore
) -> None:
    with factory.begin() as session:
        create_project(session, "tests")
    shared = Context(settings, factory, store, Registry([], source=settings.models_file))
    for name in "abc":
        upload(shared, name, ROWS)
    with factory.begin() as session:
        session.get_one(File, "c").deleted_at = now()
    found = [inspecting._take(shared) for _ in range(3)]
    assert {each.id for each in found if each} == {"a", "b"}
