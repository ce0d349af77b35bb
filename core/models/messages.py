"""What leaves the database after commit: wake-ups, and webhooks on their way."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id
from core.models.base import Base, Json, RowNumber


class Outbox(Base):
    """A message to send after commit: a queue wake-up or a webhook."""

    __tablename__ = "outbox"
    __table_args__ = (Index(None, "sent_at", "id"),)

    id: Mapped[int] = mapped_column(RowNumber, primary_key=True, autoincrement=True)
    kind: Mapped[str] = mapped_column(String(16))
    payload: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    sent_at: Mapped[int | None] = mapped_column(BigInteger)


class WebhookEndpoint(Base):
    """Where a project wants its events sent.

    `events` lists event types, empty for all. `secrets` holds `{"secret", "expires_at"}`, the
    newest first: while one is being replaced, messages are signed with both.
    """

    __tablename__ = "webhook_endpoints"

    id: Mapped[str] = mapped_column(
        String(64), primary_key=True, default=lambda: new_id("webhook_")
    )
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    url: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    events: Mapped[list[str]] = mapped_column(Json)
    secrets: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    enabled: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)


class WebhookDelivery(Base):
    """One event on its way to one endpoint; `status` is pending, delivered or failed."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index(None, "status", "next_attempt_at"),
        Index(None, "endpoint_id", "created_at", "seq"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("whd_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    endpoint_id: Mapped[str] = mapped_column(ForeignKey("webhook_endpoints.id"))
    message_id: Mapped[str] = mapped_column(String(64))
    event: Mapped[dict[str, Any]] = mapped_column(Json)
    status: Mapped[str] = mapped_column(String(16), default="pending")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    next_attempt_at: Mapped[int] = mapped_column(BigInteger, default=now)
    response_status: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
