"""What uploads leave behind goes: parts that nobody needs, and unfinished objects."""

import logging

import pytest
from sqlalchemy import select

from core.clock import now
from core.models import Project, Upload, UploadPart
from tests.fakes.memory_store import MemoryStore
from workers import upload_leftovers
from workers.cleaning import clean_once
from workers.context import Context
from workers.upload_leftovers import GRACE_S


def upload(context: Context, name: str, status: str = "pending", *, ended_s: int = 0) -> None:
    """An upload with a part, whose hour ended `ended_s` ago."""
    key = f"uploads/{name}/part"
    context.store.put_bytes(key, b"x")
    with context.sessions.begin() as session:
        session.add(
            Upload(
                id=name,
                project_id=session.scalar(select(Project.id)),
                filename=name,
                purpose="batch",
                mime_type="",
                bytes=1,
                status=status,
                expires_at=now() - ended_s,
            )
        )
        session.flush()
        session.add(UploadPart(upload_id=name, bytes=1, sha256="", object_key=key))


def test_parts_of_uploads_that_ended_go_and_others_stay(
    context: Context, store: MemoryStore
) -> None:
    upload(context, "pending", ended_s=-60)
    upload(context, "just", ended_s=60)
    upload(context, "expired", ended_s=GRACE_S + 60)
    upload(context, "cancelled", "cancelled", ended_s=-60)
    upload(context, "completed", "completed", ended_s=-60)
    clean_once(context)
    assert set(store.objects) == {"uploads/pending/part", "uploads/just/part"}
    with context.sessions() as session:
        assert set(session.scalars(select(UploadPart.upload_id))) == {"pending", "just"}
        assert session.get_one(Upload, "expired").status == "expired"
        assert session.get_one(Upload, "just").status == "pending"


def test_rows_of_parts_go_only_after_their_bytes(
    context: Context, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    upload(context, "cancelled", "cancelled")
    store.down = True
    with caplog.at_level(logging.WARNING):
        clean_once(context)
    assert "parts of cancelled stay" in caplog.text
    store.down = False
    clean_once(context)
    assert not store.objects


def test_objects_that_were_begun_and_forgotten_are_given_up(
    context: Context, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.begin("files/a")
    store.begin("uploads/a/b")
    theirs = store.begin("jobs/a")
    clean_once(context)
    assert len(store.begun) == 3
    monkeypatch.setattr(upload_leftovers, "STALE_S", -60)
    clean_once(context)
    assert set(store.begun) == {theirs}
