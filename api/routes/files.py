"""/v1/files"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from api.content import CONTENT_RESPONSES, content_response
from api.pagination import After, Limit
from api.parts import PartsDep
from api.quotas import room_for_body
from api.schemas.common import Deleted, ListPageWithIds
from api.schemas.files import FileObject
from api.services import files
from api.tenant import FileDep, TenantDep, TransactionsDep, find_file
from api.upload import IncomingFileDep

router = APIRouter(prefix="/v1/files")


@router.post("", dependencies=[Depends(room_for_body)])
async def create_file(
    transactions: TransactionsDep, parts: PartsDep, form: IncomingFileDep
) -> FileObject:
    """Store a file while it arrives."""
    max_bytes = parts.settings.max_upload_bytes
    made = await files.create_file(transactions, parts, form, max_bytes=max_bytes)
    return FileObject.of(made)


@router.get("")
def list_files(
    tenant: TenantDep,
    after: After = None,
    limit: Limit = None,
    order: Annotated[Literal["asc", "desc"], Query()] = "desc",
    purpose: Annotated[str | None, Query()] = None,
) -> ListPageWithIds[FileObject]:
    """List the project's files."""
    page = files.list_files(tenant, after=after, limit=limit, order=order, purpose=purpose)
    return ListPageWithIds.of([FileObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{file_id}")
def retrieve_file(file: FileDep) -> FileObject:
    """Show one file."""
    return FileObject.of(file)


@router.get("/{file_id}/content", response_class=Response, responses=CONTENT_RESPONSES)
def download_file(
    file_id: str, request: Request, transactions: TransactionsDep, parts: PartsDep
) -> Response:
    """Send a file's bytes as they were uploaded, or the range that is asked for."""
    with transactions.begin() as tenant:
        file = find_file(tenant, file_id)
    return content_response(request, parts.store, file)


@router.delete("/{file_id}")
def delete_file(file_id: str, transactions: TransactionsDep, parts: PartsDep) -> Deleted:
    """Delete a file."""
    files.delete_file(transactions, parts.store, file_id)
    return Deleted(id=file_id, object="file")
