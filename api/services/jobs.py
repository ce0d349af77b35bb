"""Reading jobs and dry runs, and steering them."""

from collections.abc import Mapping

from sqlalchemy import select

from api.pagination import Page, clamp, paginate
from api.services.metadata import carries
from api.tenant import Tenant
from core.errors import IllegalTransition
from core.models import TRAINING, Checkpoint, Event, Job
from core.states import transition


def list_jobs(
    tenant: Tenant,
    *,
    after: str | None,
    limit: int | None,
    metadata: Mapping[str, str] | None,
    kind: str = TRAINING,
) -> Page[Job]:
    """Return a page of jobs of one kind, newest first.

    `metadata` keeps jobs that carry all these pairs; an empty mapping keeps those without any.
    """
    query = tenant.select(Job).where(Job.kind == kind)
    if metadata is not None and not metadata:
        query = query.where(Job.meta.is_(None))
    for key, value in (metadata or {}).items():
        query = query.where(carries(tenant.session, key, value))
    return paginate(
        tenant.session,
        query,
        order=(Job.created_at, Job.seq, Job.id),
        cursor=None if after is None else tenant.select(Job).where(Job.id == after),
        limit=clamp(limit, default=20),
    )


def list_events(tenant: Tenant, job: Job, *, after: str | None, limit: int | None) -> Page[Event]:
    """Return a page of the job's events, newest first."""
    query = select(Event).where(Event.job_id == job.id)
    return paginate(
        tenant.session,
        query,
        order=(Event.seq,),
        cursor=None if after is None else query.where(Event.id == after),
        limit=clamp(limit, default=20),
    )


def list_checkpoints(
    tenant: Tenant, job: Job, *, after: str | None, limit: int | None
) -> Page[Checkpoint]:
    """Return a page of the job's stored checkpoints, newest first."""
    query = tenant.select(Checkpoint).where(Checkpoint.job_id == job.id)
    return paginate(
        tenant.session,
        query.where(Checkpoint.deleted_at.is_(None)),
        order=(Checkpoint.created_at, Checkpoint.step, Checkpoint.id),
        cursor=None if after is None else query.where(Checkpoint.id == after),
        limit=clamp(limit, default=10),
    )


def pause(tenant: Tenant, job: Job) -> Job:
    """Pause a queued job at once, a running one after its current step."""
    try:
        return transition(tenant.session, job.id, "paused", only_if=Job.status == "queued")
    except IllegalTransition:
        # Running, or a worker has claimed it just now; anything else is refused below.
        return transition(tenant.session, job.id, "pausing")


def resume(tenant: Tenant, job: Job) -> Job:
    """Queue a paused job again; it continues from its last checkpoint."""
    return transition(tenant.session, job.id, "queued", only_if=Job.status == "paused")


def cancel(tenant: Tenant, job: Job) -> Job:
    """Cancel a job that has not ended; what it has stored so far stays."""
    return transition(tenant.session, job.id, "cancelled")
