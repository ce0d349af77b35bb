"""Files as OpenAI shows them, and the form that uploads one."""

from dataclasses import dataclass
from typing import IO, Annotated, Literal

from pydantic import Field

from api.schemas.common import ApiObject, RequestBody
from core.models import File

#: What a client may upload a file for; only `fine-tune` files can train.
UPLOAD_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")


class ExpiresAfter(RequestBody):
    """When an upload expires, counted from its creation."""

    anchor: Literal["created_at"]
    # A form field is text, so this one is converted.
    seconds: Annotated[int, Field(ge=3600, le=2_592_000, strict=False)]


class UploadForm(RequestBody):
    """The fields of an upload beside the file."""

    purpose: str
    expires_after: ExpiresAfter | None = None


@dataclass(frozen=True)
class Upload:
    """A received upload; `content` reads from its first byte."""

    filename: str
    content: IO[bytes]
    purpose: str
    expires_after_s: int | None


class FileObject(ApiObject):
    """A stored file; `bytes` is its size, times are unix seconds."""

    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: str
    status: str
    status_details: str | None

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
