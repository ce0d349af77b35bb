"""/v1/uploads"""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.bodies import json_body
from api.parts import PartsDep
from api.quotas import room_for_body
from api.schemas.common import EmptyBody
from api.schemas.uploads import CompleteUpload, CreateUpload, UploadObject, UploadPartObject
from api.services import uploads
from api.tenant import TenantDep, TransactionsDep, find_upload
from api.upload import IncomingPartDep

router = APIRouter(prefix="/v1/uploads")
no_body = Depends(json_body(EmptyBody))


def known_upload(upload_id: str, transactions: TransactionsDep) -> str:
    """Return the id in the path, or raise `NoSuchUpload`: before any body is read."""
    with transactions.begin() as tenant:
        return find_upload(tenant, upload_id).id


UploadIdDep = Annotated[str, Depends(known_upload)]


@router.post("")
def create_upload(
    tenant: TenantDep,
    parts: PartsDep,
    body: Annotated[CreateUpload, Depends(json_body(CreateUpload))],
) -> UploadObject:
    """Begin an upload in parts."""
    limit = parts.settings.max_assembled_bytes
    return UploadObject.of(uploads.create_upload(tenant, body, max_bytes=limit))


@router.post("/{upload_id}/parts", dependencies=[Depends(room_for_body)])
async def add_part(
    upload_id: UploadIdDep, transactions: TransactionsDep, parts: PartsDep, form: IncomingPartDep
) -> UploadPartObject:
    """Store a part while it arrives."""
    return UploadPartObject.of(await uploads.add_part(transactions, parts, upload_id, form))


@router.post("/{upload_id}/complete")
async def complete_upload(
    upload_id: UploadIdDep,
    transactions: TransactionsDep,
    parts: PartsDep,
    body: Annotated[CompleteUpload, Depends(json_body(CompleteUpload))],
) -> UploadObject:
    """Make a file of the parts."""
    return UploadObject.of(*await uploads.complete_upload(transactions, parts, upload_id, body))


@router.post("/{upload_id}/cancel", dependencies=[no_body])
def cancel_upload(upload_id: UploadIdDep, tenant: TenantDep) -> UploadObject:
    """Close an upload without making a file."""
    return UploadObject.of(uploads.cancel_upload(tenant, upload_id))
