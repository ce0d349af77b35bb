"""Files as OpenAI shows them, and the form that uploads one."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.common import ApiObject, RequestBody
from core.models import File

#: What a client may upload a file for; only `fine-tune` files can train.
UPLOAD_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
#: One of them; the routes refuse others, in OpenAI's words.
Purpose = Annotated[str, Field(json_schema_extra={"enum": list(UPLOAD_PURPOSES)})]


class ExpiresAfter(RequestBody):
    """When an upload expires, counted from its creation."""

    anchor: Literal["created_at"]
    # A form field is text, so this one is converted.
    seconds: Annotated[int, Field(ge=3600, le=2_592_000, strict=False)]


class UploadForm(RequestBody):
    """The fields of an upload beside the file."""

    purpose: Purpose
    expires_after: ExpiresAfter | None = None


def _is_none(value: object) -> bool:
    return value is None


class FileObject(ApiObject):
    """A stored file; `bytes` is its size, times are unix seconds."""

    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: Annotated[int | None, Field(exclude_if=_is_none)] = None
    filename: str
    purpose: str
    status: str
    status_details: Annotated[str | None, Field(exclude_if=_is_none)] = None

    @classmethod
    def of(cls, row: File) -> "FileObject":
        """Show one database row."""
        return cls(
            id=row.id,
            bytes=row.bytes,
            created_at=row.created_at,
            expires_at=row.expires_at,
            filename=row.filename,
            purpose=row.purpose,
            status=row.status,
            status_details=row.status_details,
        )
