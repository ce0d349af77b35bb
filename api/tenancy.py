"""Project isolation: the one place where a query is tied to the caller's project."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, sessionmaker

from core.limits import NO_LIMITS, Limits
from core.models import (
    ApiKey,
    AuditEntry,
    Checkpoint,
    CheckpointPermission,
    Eval,
    EvalRun,
    File,
    Job,
    Upload,
    WebhookDelivery,
    WebhookEndpoint,
)

Owned = TypeVar(
    "Owned",
    ApiKey,
    AuditEntry,
    Checkpoint,
    CheckpointPermission,
    Eval,
    EvalRun,
    File,
    Job,
    Upload,
    WebhookDelivery,
    WebhookEndpoint,
)


@dataclass(frozen=True)
class Tenant:
    """One project's rows, in one transaction.

    Services get a tenant, not a session, and start every query with `select`; what belongs to
    another project is not found, as if it did not exist.
    """

    session: Session
    project_id: str
    limits: Limits = NO_LIMITS

    def select(self, model: type[Owned]) -> Select[Owned]:
        """Start a query over the project's rows of `model`."""
        return select(model).where(model.project_id == self.project_id)

    def find(self, model: type[Owned], row_id: str) -> Owned | None:
        """Return the row with this id, also a deleted one, or None."""
        return self.session.scalar(self.select(model).where(model.id == row_id))


@dataclass(frozen=True)
class Transactions:
    """The project's transactions, for routes that talk to the object store between two of them."""

    sessions: sessionmaker[Session]
    project_id: str
    limits: Limits = NO_LIMITS

    @contextmanager
    def begin(self) -> Iterator[Tenant]:
        """Open a transaction; it commits at the end of the block."""
        with self.sessions.begin() as session:
            yield Tenant(session=session, project_id=self.project_id, limits=self.limits)
