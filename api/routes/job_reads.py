"""What is read of /v1/fine_tuning/jobs all day: one job, the list, a job's events."""

from fastapi import APIRouter

from api.metadata_filter import metadata_filter
from api.pagination import After, Limit
from api.rendering import JsonBytes
from api.schemas.common import ListPage
from api.schemas.jobs import EventObject, JobObject
from api.short_route import CallerDep, ShortRoute
from core.errors import JobNotFound

router = APIRouter(prefix="/v1/fine_tuning/jobs", route_class=ShortRoute)


@router.get("", response_model=ListPage[JobObject])
async def list_jobs(caller: CallerDep, after: After = None, limit: Limit = None) -> JsonBytes:
    """List the project's jobs."""
    metadata = metadata_filter(caller.request.query_params)
    pairs = None if metadata is None else tuple(sorted(metadata.items()))
    found = await caller.ask(caller.parts.reads.jobs, after, limit, pairs)
    return JsonBytes(found)


@router.get("/{fine_tuning_job_id}", response_model=JobObject)
async def retrieve_job(fine_tuning_job_id: str, caller: CallerDep) -> JsonBytes:
    """Show one job."""
    found = await caller.ask(caller.parts.reads.job, fine_tuning_job_id)
    if found is None:
        raise JobNotFound(fine_tuning_job_id)
    return JsonBytes(found)


@router.get("/{fine_tuning_job_id}/events", response_model=ListPage[EventObject])
async def list_events(
    fine_tuning_job_id: str, caller: CallerDep, after: After = None, limit: Limit = None
) -> JsonBytes:
    """List a job's events, newest first."""
    found = await caller.ask(caller.parts.reads.events, fine_tuning_job_id, after, limit)
    if found is None:
        raise JobNotFound(fine_tuning_job_id)
    return JsonBytes(found)
