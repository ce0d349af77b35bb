"""Projects, their keys, what they may use, and what was done with them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id
from core.models.base import Base, Json


class Project(Base):
    """The unit of ownership: every key, file, job and model belongs to one.

    `limits` holds what differs from the server's own limits, `retention` after how many days
    each kind of thing is deleted; both by name, null where nothing was set. Keys of an archived
    project are refused.
    """

    __tablename__ = "projects"

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("proj_"))
    name: Mapped[str] = mapped_column(Text)
    limits: Mapped[dict[str, Any] | None] = mapped_column(Json)
    retention: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq, server_default="0")
    archived_at: Mapped[int | None] = mapped_column(BigInteger)


class ApiKey(Base):
    """A key of a project; only its SHA-256 is stored, `prefix` is for people.

    `last_used_at` lags behind by up to a minute.
    """

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("key_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    name: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    prefix: Mapped[str] = mapped_column(String(32))
    scopes: Mapped[list[str]] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    revoked_at: Mapped[int | None] = mapped_column(BigInteger)
    last_used_at: Mapped[int | None] = mapped_column(BigInteger)


class CheckpointPermission(Base):
    """Another project that may use a checkpoint as a model; `project_id` is its owner.

    One that was taken back stays, as the place where a list goes on.
    """

    __tablename__ = "checkpoint_permissions"
    __table_args__ = (
        Index(
            "ix_checkpoint_permissions_live",
            "model",
            "grantee_id",
            unique=True,
            sqlite_where=text("deleted_at IS NULL"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("cp_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    model: Mapped[str] = mapped_column(String(255))
    grantee_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)


class AuditEntry(Base):
    """One change that somebody made; `key_id` is null for changes from the operator's command."""

    __tablename__ = "audit_log"
    __table_args__ = (Index(None, "project_id", "created_at", "seq"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("audit_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    key_id: Mapped[str | None] = mapped_column(String(64))
    request_id: Mapped[str | None] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64))
    object_id: Mapped[str | None] = mapped_column(String(255))
    data: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)


class IdempotentRequest(Base):
    """The answer to a request that carried an `Idempotency-Key`; no status while it is being made.

    An answer that shows a secret is remembered without its `body`.
    """

    __tablename__ = "idempotent_requests"
    __table_args__ = (UniqueConstraint("project_id", "key"), Index(None, "created_at"))

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("idem_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    key: Mapped[str] = mapped_column(String(255))
    fingerprint: Mapped[str] = mapped_column(String(64))
    status: Mapped[int | None] = mapped_column(Integer)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
