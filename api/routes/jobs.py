"""/v1/fine_tuning/jobs, but for the reads of `api.routes.job_reads`."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.bodies import json_body
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import EmptyBody, ListPageWithIds
from api.schemas.jobs import CheckpointObject, CreateJob, JobObject
from api.services import jobs, steering
from api.services.create_job import create_job as record_job
from api.tenant import JobDep, TenantDep

router = APIRouter(prefix="/v1/fine_tuning/jobs")
no_body = Depends(json_body(EmptyBody))


@router.post("")
def create_job(
    tenant: TenantDep, parts: PartsDep, body: Annotated[CreateJob, Depends(json_body(CreateJob))]
) -> JobObject:
    """Create a job."""
    job = record_job(tenant, parts.registry, parts.judges, body)
    return JobObject.of(job, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/cancel", dependencies=[no_body])
def cancel_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Cancel a job that has not ended."""
    changed = steering.cancel(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/pause", dependencies=[no_body])
def pause_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Pause a queued or running job."""
    changed = steering.pause(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/resume", dependencies=[no_body])
def resume_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Queue a paused job again."""
    changed = steering.resume(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.get("/{fine_tuning_job_id}/checkpoints")
def list_checkpoints(
    tenant: TenantDep, job: JobDep, after: After = None, limit: Limit = None
) -> ListPageWithIds[CheckpointObject]:
    """List a job's stored checkpoints, newest first."""
    page = jobs.list_checkpoints(tenant, job, after=after, limit=limit)
    shown = [CheckpointObject.of(row) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)
