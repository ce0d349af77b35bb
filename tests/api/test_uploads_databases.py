"""Uploads in parts under several API processes at once, on SQLite and on Postgres."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.errors import PayloadTooLarge
from api.schemas.uploads import CompleteUpload
from api.services import uploads
from api.services.inspections import Inspections
from api.services.sink import Sinks
from api.tenancy import Transactions
from core.ids import new_id
from core.keys import create_project
from core.models import File, Upload, UploadPart
from tests.fakes.memory_store import MemoryStore

CONTENT = b'{"a": 1}\n' * 8


@pytest.fixture
def transactions(factory: sessionmaker[Session]) -> Transactions:
    """Transactions of a new project."""
    with factory.begin() as session:
        return Transactions(factory, create_project(session, "p").id)


@pytest.fixture
def parts(factory: sessionmaker[Session]) -> Iterator[Any]:
    """What the service needs of an API process."""
    store = MemoryStore()
    inspections = Inspections(factory, store)
    yield SimpleNamespace(store=store, inspections=inspections, sinks=Sinks(store))
    inspections.close()


def begin(transactions: Transactions) -> str:
    """An upload of `CONTENT` that takes parts."""
    with transactions.begin() as tenant:
        upload = Upload(
            project_id=tenant.project_id,
            filename="a.jsonl",
            purpose="fine-tune",
            mime_type="text/jsonl",
            bytes=len(CONTENT),
            expires_at=2**40,
        )
        tenant.session.add(upload)
        tenant.session.flush()
        return upload.id


def add_parts(transactions: Transactions, parts: Any, upload_id: str, *, most: int) -> list[Any]:
    """Add the lines of `CONTENT` as parts, all at once; returns their ids or what was raised."""

    def add(line: bytes) -> Any:
        part_id = new_id("part_")
        key = f"uploads/{upload_id}/{part_id}"
        sha256 = parts.store.put_bytes(key, line)
        row = UploadPart(
            id=part_id, upload_id=upload_id, bytes=len(line), sha256=sha256, object_key=key
        )
        try:
            uploads._add_row(transactions, row, most)
        except PayloadTooLarge as error:
            return error
        return part_id

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(add, CONTENT.splitlines(keepends=True)))


def test_parts_at_once_never_pass_the_limit_together(
    transactions: Transactions, parts: Any
) -> None:
    upload_id = begin(transactions)
    added = add_parts(transactions, parts, upload_id, most=5 * 9)
    assert sum(isinstance(each, str) for each in added) == 5
    with transactions.begin() as tenant:
        rows = tenant.session.scalars(select(UploadPart.id)).all()
    assert sorted(rows) == sorted(each for each in added if isinstance(each, str))


class Unshared(dict[str, asyncio.Lock]):
    """Locks as processes have them: each its own."""

    def setdefault(self, _: str, default: Any = None) -> Any:
        return default


def test_of_processes_that_complete_at_once_one_makes_the_file(
    transactions: Transactions, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_completing", Unshared())
    upload_id = begin(transactions)
    body = CompleteUpload(part_ids=add_parts(transactions, parts, upload_id, most=10**6))

    def complete(_: int) -> tuple[Upload, File]:
        return asyncio.run(uploads.complete_upload(transactions, parts, upload_id, body))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(complete, range(4)))
    assert len({file.id for _, file in answers}) == 1
    assert {upload.status for upload, _ in answers} == {"completed"}
    assert [key for key in parts.store.objects if key.startswith("files/")] == [
        f"files/{answers[0][1].id}"
    ]
    assert parts.store.objects[f"files/{answers[0][1].id}"] == CONTENT
    with transactions.begin() as tenant:
        assert len(tenant.session.scalars(tenant.select(File)).all()) == 1
