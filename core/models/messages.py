"""What leaves the database after commit: wake-ups, and webhooks on their way."""

from typing import Any

from sqlalchemy import BigInteger, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint
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

    `secrets` holds `{"secret", "expires_at"}`, the newest first: while one is being replaced,
    messages are signed with both. `failing_since` is the first failed attempt since the last
    success; `disabled_reason` says why the service itself turned the endpoint off.
    """

    __tablename__ = "webhook_endpoints"

    id: Mapped[str] = mapped_column(
        String(64), primary_key=True, default=lambda: new_id("webhook_")
    )
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    name: Mapped[str] = mapped_column(Text)
    url: Mapped[str] = mapped_column(Text)
    event_types: Mapped[list[str]] = mapped_column(Json)
    secrets: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    enabled: Mapped[bool] = mapped_column(default=True)
    failing_since: Mapped[int | None] = mapped_column(BigInteger)
    disabled_reason: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    updated_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)


class WebhookDelivery(Base):
    """One event on its way to one endpoint; `status` is pending, delivered or failed.

    A worker that tries it holds it until `lease_expires_at`; `attempts` never falls and tells its
    outcome from that of an earlier holder. `attempts_before` are those before the last replay:
    waits grow with the attempts since.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("endpoint_id", "message_id"),
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
    attempts_before: Mapped[int] = mapped_column(Integer, default=0)
    next_attempt_at: Mapped[int] = mapped_column(BigInteger, default=now)
    give_up_at: Mapped[int] = mapped_column(BigInteger)
    last_attempt_at: Mapped[int | None] = mapped_column(BigInteger)
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))
    response_status: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
