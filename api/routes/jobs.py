"""/v1/fine_tuning/jobs"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from api.bodies import json_body
from api.metadata_filter import metadata_filter
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import EmptyBody, ListPage, ListPageWithIds
from api.schemas.jobs import CheckpointObject, CreateJob, EventObject, JobObject
from api.services import jobs
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


@router.get("")
def list_jobs(
    request: Request, tenant: TenantDep, parts: PartsDep, after: After = None, limit: Limit = None
) -> ListPage[JobObject]:
    """List the project's jobs."""
    metadata = metadata_filter(request.query_params)
    page = jobs.list_jobs(tenant, after=after, limit=limit, metadata=metadata)
    organization_id = parts.settings.organization_id
    shown = [JobObject.of(row, organization_id=organization_id) for row in page.rows]
    return ListPage(data=shown, has_more=page.has_more)


@router.get("/{fine_tuning_job_id}")
def retrieve_job(job: JobDep, parts: PartsDep) -> JobObject:
    """Show one job."""
    return JobObject.of(job, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/cancel", dependencies=[no_body])
def cancel_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Cancel a job that has not ended."""
    changed = jobs.cancel(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/pause", dependencies=[no_body])
def pause_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Pause a queued or running job."""
    changed = jobs.pause(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.post("/{fine_tuning_job_id}/resume", dependencies=[no_body])
def resume_job(tenant: TenantDep, job: JobDep, parts: PartsDep) -> JobObject:
    """Queue a paused job again."""
    changed = jobs.resume(tenant, job)
    return JobObject.of(changed, organization_id=parts.settings.organization_id)


@router.get("/{fine_tuning_job_id}/events")
def list_events(
    tenant: TenantDep, job: JobDep, after: After = None, limit: Limit = None
) -> ListPage[EventObject]:
    """List a job's events, newest first."""
    page = jobs.list_events(tenant, job, after=after, limit=limit)
    return ListPage(data=[EventObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{fine_tuning_job_id}/checkpoints")
def list_checkpoints(
    tenant: TenantDep, job: JobDep, after: After = None, limit: Limit = None
) -> ListPageWithIds[CheckpointObject]:
    """List a job's stored checkpoints, newest first."""
    page = jobs.list_checkpoints(tenant, job, after=after, limit=limit)
    shown = [CheckpointObject.of(row) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)
