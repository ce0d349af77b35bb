"""/v1/files"""

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import Deleted, ListPageWithIds
from api.schemas.files import FileObject
from api.services import files
from api.tenant import FileDep, TenantDep
from api.upload import UploadDep

router = APIRouter(prefix="/v1/files")


@router.post("", response_model_exclude_none=True)
def create_file(tenant: TenantDep, parts: PartsDep, upload: UploadDep) -> FileObject:
    """Store an upload."""
    return FileObject.of(files.create_file(tenant, parts.store, upload))


@router.get("", response_model_exclude_none=True)
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


@router.get("/{file_id}", response_model_exclude_none=True)
def retrieve_file(file: FileDep) -> FileObject:
    """Show one file."""
    return FileObject.of(file)


@router.get("/{file_id}/content")
def download_file(file: FileDep, parts: PartsDep) -> StreamingResponse:
    """Send a file's bytes as they were uploaded."""
    headers = {
        "content-length": str(file.bytes),
        # Never shown in the browser: an uploaded page would run beside the dashboard's key.
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}",
    }
    content = parts.store.iter(file.object_key)
    return StreamingResponse(content, headers=headers, media_type="application/octet-stream")


@router.delete("/{file_id}")
def delete_file(file: FileDep, parts: PartsDep) -> Deleted:
    """Delete a file."""
    files.delete_file(parts.store, file)
    return Deleted(id=file.id, object="file")
