"""Files: bytes in the object store, a row in the database."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rft.dataset import Report
from sqlalchemy import or_, update
from starlette.concurrency import run_in_threadpool

from api.bodies import parse
from api.pagination import Page, clamp, paginate
from api.parts import Parts
from api.quotas import room_for_bytes
from api.schemas.files import UPLOAD_PURPOSES, UploadForm
from api.services.inspections import Watch
from api.tenancy import Tenant, Transactions
from api.tenant import find_file
from api.upload import IncomingForm
from core.clock import now
from core.errors import InvalidRequest
from core.ids import new_id
from core.inspection import refusal_of
from core.inspection.settle import OVERDUE_S, settle
from core.models import File
from core.store import ObjectStore, Stored

#: The most files in one page, which is also what a list without a limit gives.
MAX_FILES = 10_000
#: How long a batch file is kept when its upload does not say, in seconds: 30 days.
BATCH_EXPIRY_S = 30 * 24 * 3600
#: The purpose of files whose rows are inspected.
INSPECTED = "fine-tune"


@dataclass(frozen=True)
class Named:
    """What a file is called and for; `expires_after_s` is counted from its creation."""

    filename: str
    purpose: str
    expires_after_s: int | None


async def create_file(
    transactions: Transactions,
    parts: Parts,
    form: IncomingForm,
    *,
    max_bytes: int,
) -> File:
    """Store a file while it arrives, and record it; a refused one leaves nothing behind."""
    file_id = new_id("file-")
    key = key_of(file_id)
    watch = Watch(parts.inspections)

    def before_file(fields: Mapping[str, Any]) -> None:
        # Clients may send the purpose after the file, which then is inspected in any case.
        if "purpose" in fields and check_purpose(fields["purpose"]) != INSPECTED:
            watch.skip()

    with closing(watch):
        async with parts.sinks.open(key, on_part=watch.feed) as sink:
            received = await form.into(sink, max_bytes=max_bytes, before_file=before_file)
            fields = parse(UploadForm, received.fields)
            check_purpose(fields.purpose)
            expires = fields.expires_after
            named = Named(
                filename=received.filename or "",
                purpose=fields.purpose,
                expires_after_s=expires.seconds if expires else None,
            )
            stored = await sink.close()
            report = await report_on(watch, named, key, stored)
            file = await run_in_threadpool(record, transactions, file_id, named, stored, report)
        await run_in_threadpool(watch.settle, file)
    return file


def check_purpose(purpose: str) -> str:
    """Return the purpose; raises `InvalidRequest` for one that no file may have."""
    if purpose not in UPLOAD_PURPOSES:
        message = f"'{purpose}' is not one of {list(UPLOAD_PURPOSES)} - 'purpose'"
        raise InvalidRequest(message, param="purpose")
    return purpose


def key_of(file_id: str) -> str:
    """Return where a file's bytes lie in the object store."""
    return f"files/{file_id}"


async def report_on(watch: Watch, named: Named, key: str, stored: Stored) -> Report | None:
    """Return the report on a stored file, None when it has none or none yet.

    Raises `InvalidRequest` with every bad line of a training file that is no JSON Lines.
    """
    if named.purpose != INSPECTED:
        return None
    report = await watch.report(key, stored.bytes)
    refusal = None if report is None else refusal_of(report)
    if refusal is not None:
        raise InvalidRequest(
            f"{refusal} Nothing was stored; correct the file and upload it again.",
            param="file",
            code="invalid_file_format",
        )
    return report


def record(
    transactions: Transactions,
    file_id: str,
    named: Named,
    stored: Stored,
    report: Report | None,
) -> File:
    """Record a stored file, and the report on its content, in one transaction."""
    with transactions.begin() as tenant:
        file = new_file(tenant, file_id, named, stored, report)
    return file


def new_file(
    tenant: Tenant, file_id: str, named: Named, stored: Stored, report: Report | None
) -> File:
    """Add the row of a stored file; without its report a training file is only `uploaded`."""
    room_for_bytes(tenant, stored.bytes)
    created_at = now()
    expiry_s = named.expires_after_s
    if expiry_s is None and named.purpose == "batch":
        expiry_s = BATCH_EXPIRY_S
    status = "uploaded" if named.purpose == INSPECTED else "processed"
    file = File(
        id=file_id,
        project_id=tenant.project_id,
        filename=named.filename,
        purpose=named.purpose,
        bytes=stored.bytes,
        sha256=stored.sha256,
        object_key=key_of(file_id),
        status=status,
        created_at=created_at,
        expires_at=None if expiry_s is None else created_at + expiry_s,
        inspect_after=created_at + OVERDUE_S if status == "uploaded" else None,
    )
    tenant.session.add(file)
    tenant.session.flush()
    if report is not None:
        settle(tenant.session, file_id, stored.sha256, report)
        tenant.session.refresh(file)
    return file


def list_files(
    tenant: Tenant, *, after: str | None, limit: int | None, order: str, purpose: str | None
) -> Page[File]:
    """Return a page of the project's live files."""
    query = tenant.select(File).where(
        File.deleted_at.is_(None), or_(File.expires_at.is_(None), File.expires_at > now())
    )
    if purpose is not None:
        query = query.where(File.purpose == purpose)
    return paginate(
        tenant.session,
        query,
        order=(File.created_at, File.seq, File.id),
        # A client may delete each file while it follows the pages: deleted rows stay good cursors.
        cursor=None if after is None else tenant.select(File).where(File.id == after),
        limit=clamp(limit, default=MAX_FILES, maximum=MAX_FILES),
        descending=order == "desc",
    )


def delete_file(transactions: Transactions, store: ObjectStore, file_id: str) -> None:
    """Delete a file's bytes, then mark its row; when the store fails, nothing is marked.

    Raises `NoSuchFile` for one that is not there.
    """
    with transactions.begin() as tenant:
        object_key = find_file(tenant, file_id).object_key
    store.delete(object_key)
    with transactions.begin() as tenant:
        tenant.session.execute(
            update(File)
            .where(File.id == file_id, File.project_id == tenant.project_id)
            .where(File.deleted_at.is_(None))
            .values(deleted_at=now())
        )
