"""Uploads in parts: parts lie in the object store until a file is made of them, or they expire."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from weakref import WeakValueDictionary

from rft.dataset import Report
from sqlalchemy import func, select, update
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from api.errors import PayloadTooLarge
from api.parts import Parts
from api.quotas import room_for_bytes
from api.schemas.uploads import CompleteUpload, CreateUpload
from api.services.files import Named, check_purpose, key_of, new_file, report_on
from api.services.inspections import Watch
from api.tenancy import Tenant, Transactions
from api.tenant import find_upload
from api.upload import IncomingForm, clean_filename
from core.clock import now
from core.errors import InvalidRequest, ObjectMissing
from core.ids import new_id
from core.models import File, Upload, UploadPart
from core.store import ObjectStore, Stored

#: The largest part, in bytes.
MAX_PART_BYTES = 64 * 1024 * 1024
#: How long an upload takes parts, in seconds.
LIFE_S = 3600

#: What is hashed at a time on the event loop: few enough bytes to keep nobody waiting.
_READ_BYTES = 1024 * 1024

#: Uploads that this process is completing. A second request for one waits, instead of reading
#: all its parts as well; the database decides between processes.
_completing: "WeakValueDictionary[str, asyncio.Lock]" = WeakValueDictionary()


class UploadClosed(InvalidRequest):
    """The upload takes no parts and makes no file any more."""

    code = "invalid_upload_state"

    def __init__(self, upload: Upload) -> None:
        super().__init__(
            f"{upload.id} is {upload.current_status} and no longer pending;"
            " begin another one with POST /v1/uploads."
        )


def create_upload(tenant: Tenant, body: CreateUpload, *, max_bytes: int) -> Upload:
    """Begin an upload that takes parts for an hour."""
    check_purpose(body.purpose)
    if body.bytes > max_bytes:
        raise InvalidRequest(
            f"An upload may have {max_bytes:,} bytes in all, and this one declares"
            f" {body.bytes:,}; send less, or have the operator raise the limit.",
            param="bytes",
            code="invalid_value",
        )
    room_for_bytes(tenant, body.bytes)
    created_at = now()
    upload = Upload(
        project_id=tenant.project_id,
        filename=clean_filename(body.filename),
        purpose=body.purpose,
        mime_type=body.mime_type,
        bytes=body.bytes,
        file_expires_after_s=body.expires_after.seconds if body.expires_after else None,
        created_at=created_at,
        expires_at=created_at + LIFE_S,
    )
    tenant.session.add(upload)
    tenant.session.flush()
    return upload


async def add_part(
    transactions: Transactions, parts: Parts, upload_id: str, form: IncomingForm
) -> UploadPart:
    """Store a part while it arrives; parts of one upload may arrive side by side."""
    await run_in_threadpool(_pending, transactions, upload_id)
    part_id = new_id("part_")
    async with parts.sinks.open(f"{prefix_of(upload_id)}/{part_id}") as sink:
        received = await form.into(sink, max_bytes=MAX_PART_BYTES)
        if received.fields:
            name = next(iter(received.fields))
            raise InvalidRequest(
                f"Unknown parameter: '{name}'. The form takes data.",
                param=name,
                code="unknown_parameter",
            )
        stored = await sink.close()
        row = UploadPart(
            id=part_id,
            upload_id=upload_id,
            bytes=stored.bytes,
            sha256=stored.sha256,
            object_key=sink.key,
        )
        limit = parts.settings.max_assembled_bytes
        await run_in_threadpool(_add_row, transactions, row, limit)
    return row


async def complete_upload(
    transactions: Transactions, parts: Parts, upload_id: str, body: CompleteUpload
) -> tuple[Upload, File]:
    """Make a file of the parts in the order that the body names.

    Asked again with the same parts, as by a client whose connection broke, it answers with the
    file that it made.
    """
    lock = _completing.setdefault(upload_id, asyncio.Lock())
    async with lock:
        upload, sources, file = await run_in_threadpool(_sources, transactions, upload_id, body)
        if file is not None:
            return upload, file
        try:
            return await _assemble(transactions, parts, upload, sources, body.md5)
        except (UploadClosed, ObjectMissing):
            # Another process was faster: with the same parts it made the same file, and they go.
            upload, _, file = await run_in_threadpool(_sources, transactions, upload_id, body)
            if file is None:
                raise
            return upload, file


def cancel_upload(tenant: Tenant, upload_id: str) -> Upload:
    """Close an upload to further parts; what it stored is deleted later."""
    upload = find_upload(tenant, upload_id)
    if upload.current_status == "cancelled":
        return upload
    changed = tenant.session.scalar(
        update(Upload)
        .where(Upload.id == upload_id, Upload.status == "pending", Upload.expires_at > now())
        .values(status="cancelled")
        .returning(Upload)
        .execution_options(populate_existing=True)
    )
    if changed is None:
        tenant.session.refresh(upload)
        raise UploadClosed(upload)
    return changed


def prefix_of(upload_id: str) -> str:
    """Return the folder in the object store that holds an upload's parts."""
    return f"uploads/{upload_id}"


def _pending(transactions: Transactions, upload_id: str) -> Upload:
    with transactions.begin() as tenant:
        upload = find_upload(tenant, upload_id)
    if upload.current_status != "pending":
        raise UploadClosed(upload)
    return upload


def _add_row(transactions: Transactions, row: UploadPart, max_bytes: int) -> None:
    with transactions.begin() as tenant:
        # The lock keeps others from closing the upload or adding to it; on SQLite the insertion
        # does, so what counts is read after it.
        locked = tenant.select(Upload).where(Upload.id == row.upload_id).with_for_update()
        upload = tenant.session.scalars(locked).one()
        room_for_bytes(tenant, row.bytes)
        tenant.session.add(row)
        tenant.session.flush()
        tenant.session.refresh(upload)
        if upload.current_status != "pending":
            raise UploadClosed(upload)
        total = tenant.session.scalar(
            select(func.sum(UploadPart.bytes)).where(UploadPart.upload_id == upload.id)
        )
        if total is not None and total > max_bytes:
            raise PayloadTooLarge(max_bytes)


def _sources(
    transactions: Transactions, upload_id: str, body: CompleteUpload
) -> tuple[Upload, Sequence[UploadPart], File | None]:
    """Return the parts in order, or the file when they already made one."""
    with transactions.begin() as tenant:
        upload = find_upload(tenant, upload_id)
        known = {
            part.id: part
            for part in tenant.session.scalars(
                select(UploadPart).where(UploadPart.upload_id == upload.id)
            )
        }
        if upload.status == "completed" and upload.part_ids == body.part_ids:
            file = tenant.find(File, upload.file_id or "")
            if file is not None and file.live:
                return upload, (), file
    if upload.current_status != "pending":
        raise UploadClosed(upload)
    return upload, _in_order(upload, known, body.part_ids), None


def _in_order(
    upload: Upload, known: dict[str, UploadPart], part_ids: Sequence[str]
) -> list[UploadPart]:
    unknown = [part_id for part_id in part_ids if part_id not in known]
    if unknown:
        raise InvalidRequest(
            f"{upload.id} has no part {', '.join(unknown[:5])}; name the ids that adding parts"
            " returned.",
            param="part_ids",
            code="invalid_part",
        )
    if len(set(part_ids)) < len(part_ids):
        twice = next(each for each in part_ids if part_ids.count(each) > 1)
        raise InvalidRequest(
            f"The part {twice} is named twice; name each part once.",
            param="part_ids",
            code="invalid_part",
        )
    total = sum(known[part_id].bytes for part_id in part_ids)
    if total != upload.bytes:
        raise InvalidRequest(
            f"The parts have {total:,} bytes, but {upload.id} was declared with"
            f" {upload.bytes:,}; name all its parts, in order.",
            param="part_ids",
            code="size_mismatch",
        )
    return [known[part_id] for part_id in part_ids]


async def _assemble(
    transactions: Transactions,
    parts: Parts,
    upload: Upload,
    sources: Sequence[UploadPart],
    md5: str | None,
) -> tuple[Upload, File]:
    """Copy the parts into one object, in bounded memory.

    They pass through this process, although a store can join them by itself: the hash of the whole
    and the inspection need every byte, and a store joins no parts below 5 MiB.
    """
    file_id = new_id("file-")
    named = Named(upload.filename, upload.purpose, upload.file_expires_after_s)
    watch = Watch(parts.inspections)
    if upload.purpose != "fine-tune":
        watch.skip()
    digest = hashlib.md5(usedforsecurity=False)
    with closing(watch):
        async with parts.sinks.open(key_of(file_id), on_part=watch.feed) as sink:
            content = _bytes_of(parts.store, sources, digest if md5 else None)
            async for chunk in iterate_in_threadpool(content):
                await sink.write(chunk)
            if md5 is not None and digest.hexdigest() != md5.lower():
                raise InvalidRequest(
                    f"The parts have the MD5 {digest.hexdigest()}, not {md5}; name them in order,"
                    " or upload again the one that differs.",
                    param="md5",
                    code="checksum_mismatch",
                )
            stored = await sink.close()
            report = await report_on(watch, named, sink.key, stored)
            made = await run_in_threadpool(
                _finish, transactions, upload.id, file_id, named, stored, report, sources
            )
        await run_in_threadpool(watch.settle, made[1])
    return made


def _bytes_of(
    store: ObjectStore, sources: Sequence[UploadPart], digest: "hashlib._Hash | None"
) -> Iterator[bytes]:
    for part in sources:
        for chunk in store.iter(part.object_key, _READ_BYTES):
            if digest is not None:
                digest.update(chunk)
            yield chunk


def _finish(
    transactions: Transactions,
    upload_id: str,
    file_id: str,
    named: Named,
    stored: Stored,
    report: Report | None,
    sources: Sequence[UploadPart],
) -> tuple[Upload, File]:
    """Record the file and close the upload in one step: of two that race, one makes the file."""
    with transactions.begin() as tenant:
        changed = tenant.session.scalar(
            update(Upload)
            .where(Upload.id == upload_id, Upload.status == "pending")
            .values(status="completed", file_id=file_id, part_ids=[source.id for source in sources])
            .returning(Upload)
        )
        if changed is None:
            raise UploadClosed(find_upload(tenant, upload_id))
        return changed, new_file(tenant, file_id, named, stored, report)
