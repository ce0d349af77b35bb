"""Files: bytes in the object store, a row in the database."""

from sqlalchemy import or_

from api.pagination import Page, clamp, paginate
from api.schemas.files import Upload
from api.services.jsonl import check_jsonl
from api.tenant import Tenant
from core.clock import now
from core.ids import new_id
from core.models import File
from core.store import ObjectStore

#: The most files in one page, which is also what a list without a limit gives.
MAX_FILES = 10_000
#: How long a batch file is kept when its upload does not say, in seconds: 30 days.
BATCH_EXPIRY_S = 30 * 24 * 3600


def create_file(tenant: Tenant, store: ObjectStore, upload: Upload) -> File:
    """Stream an upload to the store and record it; a bad training file is refused before."""
    if upload.purpose == "fine-tune":
        check_jsonl(upload.content)
    file_id = new_id("file-")
    key = f"files/{file_id}"
    stored = store.put_stream(key, upload.content)
    created_at = now()
    expiry_s = upload.expires_after_s
    if expiry_s is None and upload.purpose == "batch":
        expiry_s = BATCH_EXPIRY_S
    file = File(
        id=file_id,
        project_id=tenant.project_id,
        filename=upload.filename,
        purpose=upload.purpose,
        bytes=stored.bytes,
        sha256=stored.sha256,
        object_key=key,
        status="processed",
        created_at=created_at,
        expires_at=None if expiry_s is None else created_at + expiry_s,
    )
    tenant.session.add(file)
    tenant.session.flush()
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


def delete_file(store: ObjectStore, file: File) -> None:
    """Delete a file's bytes, then mark its row; when the store fails, nothing is marked."""
    store.delete(file.object_key)
    file.deleted_at = now()
