"""Project isolation: the one place where a query is tied to the caller's project."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.auth import PrincipalDep
from api.parts import PartsDep
from core.errors import JobNotFound, NotFound, RftError
from core.models import (
    DRY_RUN,
    TRAINING,
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


class NoSuchFile(RftError, LookupError):
    """No such file; OpenAI gives this error no code."""

    status = 404
    param = "id"

    def __init__(self, file_id: str) -> None:
        super().__init__(f"No such File object: {file_id}. GET /v1/files lists them.")


@dataclass(frozen=True)
class Tenant:
    """One project's rows, in one transaction.

    Services get a tenant, not a session, and start every query with `select`; what belongs to
    another project is not found, as if it did not exist.
    """

    session: Session
    project_id: str

    def select(self, model: type[Owned]) -> Select[Owned]:
        """Start a query over the project's rows of `model`."""
        return select(model).where(model.project_id == self.project_id)

    def find(self, model: type[Owned], row_id: str) -> Owned | None:
        """Return the row with this id, also a deleted one, or None."""
        return self.session.scalar(self.select(model).where(model.id == row_id))


def open_tenant(parts: PartsDep, principal: PrincipalDep) -> Iterator[Tenant]:
    """Open the request's transaction; it commits when the route has returned its answer."""
    with parts.sessions.begin() as session:
        yield Tenant(session=session, project_id=principal.project_id)


# With this scope the commit comes before the response is sent, so that nobody is told of a change
# that then fails, and the next request of the same client sees it.
TenantDep = Annotated[Tenant, Depends(open_tenant, scope="function")]


def get_job(fine_tuning_job_id: str, tenant: TenantDep) -> Job:
    """Return the fine-tuning job named in the path, or raise `JobNotFound`."""
    job = tenant.find(Job, fine_tuning_job_id)
    if job is None or job.kind != TRAINING:
        raise JobNotFound(fine_tuning_job_id)
    return job


def get_dry_run(dry_run_id: str, tenant: TenantDep) -> Job:
    """Return the dry run named in the path, or raise `NotFound`."""
    job = tenant.find(Job, dry_run_id)
    if job is None or job.kind != DRY_RUN:
        raise NotFound(
            f"No such dry run: {dry_run_id}. GET /v1/fine_tuning/dry_runs lists them.",
            code="dry_run_not_found",
            param="dry_run_id",
        )
    return job


def get_file(file_id: str, tenant: TenantDep) -> File:
    """Return the live file named in the path, or raise `NoSuchFile`."""
    file = tenant.find(File, file_id)
    if file is None or not file.live:
        raise NoSuchFile(file_id)
    return file


JobDep = Annotated[Job, Depends(get_job)]
DryRunDep = Annotated[Job, Depends(get_dry_run)]
FileDep = Annotated[File, Depends(get_file)]
