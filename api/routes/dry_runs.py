"""/v1/fine_tuning/dry_runs"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from api.bodies import json_body
from api.metadata_filter import metadata_filter
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import EmptyBody, ListPage
from api.schemas.dry_runs import CreateDryRun, DryRunObject
from api.schemas.jobs import EventObject
from api.services import jobs, steering
from api.services.dry_runs import create_dry_run as record_dry_run
from api.tenant import DryRunDep, TenantDep
from core.models import DRY_RUN

router = APIRouter(prefix="/v1/fine_tuning/dry_runs")
no_body = Depends(json_body(EmptyBody))


@router.post("")
def create_dry_run(
    tenant: TenantDep,
    parts: PartsDep,
    body: Annotated[CreateDryRun, Depends(json_body(CreateDryRun))],
) -> DryRunObject:
    """Start a dry run."""
    return DryRunObject.of(record_dry_run(tenant, parts.registry, parts.judges, body))


@router.get("")
def list_dry_runs(
    request: Request, tenant: TenantDep, after: After = None, limit: Limit = None
) -> ListPage[DryRunObject]:
    """List the project's dry runs."""
    metadata = metadata_filter(request.query_params)
    page = jobs.list_jobs(tenant, after=after, limit=limit, metadata=metadata, kind=DRY_RUN)
    return ListPage(data=[DryRunObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{dry_run_id}")
def retrieve_dry_run(dry_run: DryRunDep) -> DryRunObject:
    """Show one dry run with its report."""
    return DryRunObject.of(dry_run)


@router.post("/{dry_run_id}/cancel", dependencies=[no_body])
def cancel_dry_run(tenant: TenantDep, dry_run: DryRunDep) -> DryRunObject:
    """Cancel a dry run that has not ended."""
    return DryRunObject.of(steering.cancel(tenant, dry_run))


@router.get("/{dry_run_id}/events")
def list_dry_run_events(
    tenant: TenantDep, dry_run: DryRunDep, after: After = None, limit: Limit = None
) -> ListPage[EventObject]:
    """List a dry run's events, newest first."""
    page = jobs.list_events(tenant, dry_run.id, after=after, limit=limit)
    return ListPage(data=[EventObject.of(row) for row in page.rows], has_more=page.has_more)
