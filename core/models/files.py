"""Files, uploads in parts, and what the validator said about their content."""

from typing import Any, Literal, TypeAlias, cast

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id
from core.models.base import Base, Json

UploadStatus: TypeAlias = Literal["pending", "completed", "cancelled", "expired"]


class File(Base):
    """An uploaded or produced file; its bytes lie in the object store under `object_key`.

    One that is still `uploaded` at `inspect_after` is inspected by a worker.
    """

    __tablename__ = "files"
    __table_args__ = (Index(None, "project_id", "created_at", "seq"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("file-"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    filename: Mapped[str] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(String(32))
    bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16), default="processed")
    status_details: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)
    inspect_after: Mapped[int | None] = mapped_column(BigInteger)

    @property
    def live(self) -> bool:
        """Whether the file is neither deleted nor past its expiry."""
        return self.deleted_at is None and (self.expires_at is None or self.expires_at > now())


class Upload(Base):
    """A file that arrives in parts; `file_id` is what completing it made of `part_ids`."""

    __tablename__ = "uploads"
    __table_args__ = (Index(None, "status", "expires_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("upload_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    filename: Mapped[str] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(String(32))
    mime_type: Mapped[str] = mapped_column(Text)
    bytes: Mapped[int] = mapped_column(BigInteger)
    file_expires_after_s: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(16), default="pending")
    file_id: Mapped[str | None] = mapped_column(String(64))
    part_ids: Mapped[list[str] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    expires_at: Mapped[int] = mapped_column(BigInteger)

    @property
    def current_status(self) -> UploadStatus:
        """What the upload is now: a pending one past its expiry has expired."""
        if self.status == "pending" and self.expires_at <= now():
            return "expired"
        return cast(UploadStatus, self.status)


class UploadPart(Base):
    """One part of an upload; its bytes lie in the object store under `object_key`."""

    __tablename__ = "upload_parts"

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("part_"))
    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id"), index=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)


class FileReport(Base):
    """What the validator said about bytes with this `sha256`, read as rows of `kind`.

    `version` is the validator's: a report of an older one is made anew.
    """

    __tablename__ = "file_reports"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    version: Mapped[str] = mapped_column(String(32))
    report: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
