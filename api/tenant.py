"""What routes depend on: the caller's transaction, and the row that a path names."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends

from api.auth import PrincipalDep
from api.parts import PartsDep
from api.tenancy import Tenant, Transactions
from core.errors import JobNotFound, NotFound, RftError
from core.models import DRY_RUN, TRAINING, File, Job, Upload


class NoSuchUpload(NotFound):
    """No such upload in parts."""

    code = "upload_not_found"
    param = "upload_id"

    def __init__(self, upload_id: str) -> None:
        super().__init__(f"No such Upload object: {upload_id}. POST /v1/uploads begins one.")


class NoSuchFile(RftError, LookupError):
    """No such file; OpenAI gives this error no code."""

    status = 404
    param = "id"

    def __init__(self, file_id: str) -> None:
        super().__init__(f"No such File object: {file_id}. GET /v1/files lists them.")


def open_tenant(parts: PartsDep, principal: PrincipalDep) -> Iterator[Tenant]:
    """Open the request's transaction; it commits when the route has returned its answer."""
    with parts.sessions.begin() as session:
        yield Tenant(session=session, project_id=principal.project_id, limits=principal.limits)


# With this scope the commit comes before the response is sent, so that nobody is told of a change
# that then fails, and the next request of the same client sees it.
TenantDep = Annotated[Tenant, Depends(open_tenant, scope="function")]


def get_transactions(parts: PartsDep, principal: PrincipalDep) -> Transactions:
    """Return the transactions of the caller's project; none is open yet."""
    return Transactions(
        sessions=parts.sessions, project_id=principal.project_id, limits=principal.limits
    )


TransactionsDep = Annotated[Transactions, Depends(get_transactions)]


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
    return find_file(tenant, file_id)


def find_file(tenant: Tenant, file_id: str) -> File:
    """Return a live file, or raise `NoSuchFile`."""
    file = tenant.find(File, file_id)
    if file is None or not file.live:
        raise NoSuchFile(file_id)
    return file


def find_upload(tenant: Tenant, upload_id: str) -> Upload:
    """Return an upload in parts, or raise `NoSuchUpload`."""
    upload = tenant.find(Upload, upload_id)
    if upload is None:
        raise NoSuchUpload(upload_id)
    return upload


JobDep = Annotated[Job, Depends(get_job)]
DryRunDep = Annotated[Job, Depends(get_dry_run)]
FileDep = Annotated[File, Depends(get_file)]
