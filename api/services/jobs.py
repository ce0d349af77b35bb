"""Reading jobs and dry runs, their events and checkpoints."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select

from api.pagination import Page, clamp, paginate
from api.services.metadata import carries
from api.tenancy import Tenant
from core.models import TRAINING, Checkpoint, Event, Job

#: What puts each list into its order; the last column tells rows apart.
JOB_ORDER = (Job.created_at, Job.seq, Job.id)
EVENT_ORDER = (Event.seq,)
DEFAULT_LIMIT = 20

#: What to select instead of whole rows.
Columns = Sequence[ColumnElement[Any]] | None


def list_jobs(
    tenant: Tenant,
    *,
    after: str | None,
    limit: int | None,
    metadata: Mapping[str, str] | None,
    kind: str = TRAINING,
    columns: Columns = None,
) -> Page[Any]:
    """Return a page of jobs of one kind, newest first; only some columns of them, when given.

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
        order=JOB_ORDER,
        cursor=None if after is None else tenant.select(Job).where(Job.id == after),
        limit=clamp(limit, default=DEFAULT_LIMIT),
        columns=columns,
    )


def list_events(
    tenant: Tenant, job_id: str, *, after: str | None, limit: int | None, columns: Columns = None
) -> Page[Any]:
    """Return a page of the job's events, newest first; only some columns of them, when given."""
    query = select(Event).where(Event.job_id == job_id)
    return paginate(
        tenant.session,
        query,
        order=EVENT_ORDER,
        cursor=None if after is None else query.where(Event.id == after),
        limit=clamp(limit, default=DEFAULT_LIMIT),
        columns=columns,
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
