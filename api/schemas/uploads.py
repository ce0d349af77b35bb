"""Uploads in parts as OpenAI shows them, and the bodies that make them."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.common import ApiObject, RequestBody
from api.schemas.files import ExpiresAfter, FileObject, Purpose
from core.models import File, Upload, UploadPart
from core.models.files import UploadStatus


class CreateUpload(RequestBody):
    """The body that begins an upload: what the parts will make together."""

    filename: Annotated[str, Field(min_length=1)]
    purpose: Purpose
    bytes: Annotated[int, Field(gt=0)]
    mime_type: str
    expires_after: ExpiresAfter | None = None


class CompleteUpload(RequestBody):
    """The body that makes a file of the parts, in this order."""

    part_ids: Annotated[list[str], Field(min_length=1)]
    md5: Annotated[str | None, Field(pattern=r"^[0-9A-Fa-f]{32}$")] = None


class PartForm(RequestBody):
    """The form of a part has no fields beside its file `data`."""


class UploadObject(ApiObject):
    """An upload; `bytes` is the size that its file will have, times are unix seconds."""

    object: Literal["upload"] = "upload"
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: str
    status: UploadStatus
    file: FileObject | None = None

    @classmethod
    def of(cls, row: Upload, file: File | None = None) -> "UploadObject":
        """Show one database row, with the file it made."""
        return cls(
            id=row.id,
            bytes=row.bytes,
            created_at=row.created_at,
            expires_at=row.expires_at,
            filename=row.filename,
            purpose=row.purpose,
            status=row.current_status,
            file=None if file is None else FileObject.of(file),
        )


class UploadPartObject(ApiObject):
    """A part of an upload."""

    object: Literal["upload.part"] = "upload.part"
    created_at: int
    upload_id: str

    @classmethod
    def of(cls, row: UploadPart) -> "UploadPartObject":
        """Show one database row."""
        return cls(id=row.id, created_at=row.created_at, upload_id=row.upload_id)
