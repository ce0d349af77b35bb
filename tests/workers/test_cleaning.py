"""What nobody needs any more is let go of: expired files and old messages."""

import logging

import pytest
from sqlalchemy import select

from core.clock import now
from core.models import File, Outbox, Project
from core.queue import KEPT_S
from core.settings import Settings
from tests.fakes.memory_store import MemoryStore
from workers.app import make_app
from workers.cleaning import clean_once
from workers.context import Context
from workers.tasks import CLEAN


def file(context: Context, name: str, *, expires_at: int | None) -> File:
    """A stored file."""
    context.store.put_bytes(f"files/{name}", name.encode())
    with context.sessions.begin() as session:
        project_id = session.scalar(select(Project.id))
        row = File(
            project_id=project_id,
            filename=name,
            purpose="batch",
            bytes=len(name),
            sha256="",
            object_key=f"files/{name}",
            expires_at=expires_at,
        )
        session.add(row)
    return row


def deleted(context: Context) -> set[str]:
    with context.sessions() as session:
        return set(session.scalars(select(File.filename).where(File.deleted_at.is_not(None))))


def test_expired_files_lose_their_bytes_and_others_stay(
    context: Context, store: MemoryStore
) -> None:
    file(context, "expired", expires_at=now() - 1)
    file(context, "later", expires_at=now() + 3600)
    file(context, "never", expires_at=None)
    clean_once(context)
    assert set(store.objects) == {"files/later", "files/never"}
    assert deleted(context) == {"expired"}


def test_one_round_deletes_a_bounded_number_oldest_first(
    context: Context, store: MemoryStore
) -> None:
    for age in range(1, 6):
        file(context, f"{age}", expires_at=now() - age)
    clean_once(context, limit=2)
    assert deleted(context) == {"5", "4"}
    clean_once(context, limit=2)
    clean_once(context, limit=2)
    assert not store.objects


def test_files_are_marked_only_once_their_bytes_are_gone(
    context: Context, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    row = file(context, "expired", expires_at=now() - 1)
    store.down = True
    with caplog.at_level(logging.WARNING):
        clean_once(context)
    assert deleted(context) == set()
    assert row.id in caplog.text and "does not answer" in caplog.text
    store.down = False
    clean_once(context)
    assert deleted(context) == {"expired"}


def test_old_messages_go_too(context: Context) -> None:
    with context.sessions.begin() as session:
        session.add(Outbox(kind="wake", payload={}, created_at=now() - KEPT_S - 60))
    clean_once(context)
    with context.sessions() as session:
        assert session.scalar(select(Outbox.id)) is None


def test_beat_asks_for_it(settings: Settings) -> None:
    app = make_app(settings)
    asked = [entry["task"] for entry in app.conf.beat_schedule.values()]
    assert CLEAN in asked and CLEAN in app.tasks
