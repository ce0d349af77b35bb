"""/v1/evals"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request

from api.bodies import json_body
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import EmptyBody, ListPageWithIds
from api.schemas.eval_results import DeletedRun, OutputItemObject, RunObject
from api.schemas.eval_runs import CreateRun
from api.schemas.evals import CreateEval, DeletedEval, EvalObject, UpdateEval
from api.services import eval_runs, evals
from api.services.evals import Order, OrderBy
from api.tenant import TenantDep
from core.models import Eval, EvalRun

router = APIRouter(prefix="/v1/evals")
no_body = Depends(json_body(EmptyBody))

RunStatus = Literal["queued", "in_progress", "completed", "canceled", "failed"]
#: `failed` is what OpenAI's description says where its schema says `fail`; `error` is ours.
ItemStatus = Literal["fail", "pass", "failed", "error"]


def get_eval(eval_id: str, tenant: TenantDep) -> Eval:
    """Return the eval named in the path."""
    return evals.get_eval(tenant, eval_id)


EvalDep = Annotated[Eval, Depends(get_eval)]


def get_run(run_id: str, tenant: TenantDep, owner: EvalDep) -> EvalRun:
    """Return the run named in the path."""
    return eval_runs.get_run(tenant, owner, run_id)


RunDep = Annotated[EvalRun, Depends(get_run)]


@router.post("", status_code=201)
def create_eval(
    tenant: TenantDep,
    parts: PartsDep,
    body: Annotated[CreateEval, Depends(json_body(CreateEval))],
) -> EvalObject:
    """Create an eval: what its items look like, and the criteria that they are tested with."""
    return EvalObject.of(evals.create_eval(tenant, parts.judges, body))


@router.get("")
def list_evals(
    tenant: TenantDep,
    after: After = None,
    limit: Limit = None,
    order: Order = "asc",
    order_by: OrderBy = "created_at",
) -> ListPageWithIds[EvalObject]:
    """List the project's evals."""
    page = evals.list_evals(tenant, after=after, limit=limit, order=order, order_by=order_by)
    return ListPageWithIds.of([EvalObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/{eval_id}")
def retrieve_eval(owner: EvalDep) -> EvalObject:
    """Show one eval."""
    return EvalObject.of(owner)


@router.post("/{eval_id}")
def update_eval(
    owner: EvalDep, body: Annotated[UpdateEval, Depends(json_body(UpdateEval))]
) -> EvalObject:
    """Change an eval's name or metadata."""
    return EvalObject.of(evals.update_eval(owner, body))


@router.delete("/{eval_id}")
def delete_eval(tenant: TenantDep, owner: EvalDep) -> DeletedEval:
    """Delete an eval with its runs; those that are live are canceled."""
    evals.delete_eval(tenant, owner)
    return DeletedEval(eval_id=owner.id)


@router.post("/{eval_id}/runs", status_code=201)
def create_run(
    request: Request,
    tenant: TenantDep,
    parts: PartsDep,
    owner: EvalDep,
    body: Annotated[CreateRun, Depends(json_body(CreateRun))],
) -> RunObject:
    """Start a run: sample from a model, or take samples that are there, and grade them."""
    run = eval_runs.create_run(tenant, parts, owner, body)
    return RunObject.of(run, base_url=str(request.base_url))


@router.get("/{eval_id}/runs")
def list_runs(
    request: Request,
    tenant: TenantDep,
    owner: EvalDep,
    after: After = None,
    limit: Limit = None,
    order: Order = "asc",
    status: RunStatus | None = None,
) -> ListPageWithIds[RunObject]:
    """List the runs of an eval."""
    page = eval_runs.list_runs(tenant, owner, after=after, limit=limit, order=order, status=status)
    shown = [RunObject.of(row, base_url=str(request.base_url)) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)


@router.get("/{eval_id}/runs/{run_id}")
def retrieve_run(request: Request, run: RunDep) -> RunObject:
    """Show one run."""
    return RunObject.of(run, base_url=str(request.base_url))


@router.post("/{eval_id}/runs/{run_id}", dependencies=[no_body])
def cancel_run(request: Request, tenant: TenantDep, run: RunDep) -> RunObject:
    """Cancel a run that has not ended."""
    changed = eval_runs.cancel_run(tenant, run)
    return RunObject.of(changed, base_url=str(request.base_url))


@router.post("/{eval_id}/runs/{run_id}/cancel", dependencies=[no_body])
def cancel_run_as_sdks_do(request: Request, tenant: TenantDep, run: RunDep) -> RunObject:
    """Cancel a run that has not ended, at the path that OpenAI's SDKs use."""
    return cancel_run(request, tenant, run)


@router.delete("/{eval_id}/runs/{run_id}")
def delete_run(tenant: TenantDep, run: RunDep) -> DeletedRun:
    """Delete a run with its output items."""
    eval_runs.delete_run(tenant, run)
    return DeletedRun(run_id=run.id)


@router.get("/{eval_id}/runs/{run_id}/output_items")
def list_output_items(
    tenant: TenantDep,
    run: RunDep,
    after: After = None,
    limit: Limit = None,
    order: Order = "asc",
    status: ItemStatus | None = None,
) -> ListPageWithIds[OutputItemObject]:
    """List what a run found about each item, in the order of the data source."""
    wanted = "fail" if status == "failed" else status
    page = eval_runs.list_items(tenant, run, after=after, limit=limit, order=order, status=wanted)
    shown = [OutputItemObject.of(row, eval_id=run.eval_id) for row in page.rows]
    return ListPageWithIds.of(shown, has_more=page.has_more)


@router.get("/{eval_id}/runs/{run_id}/output_items/{output_item_id}")
def retrieve_output_item(tenant: TenantDep, run: RunDep, output_item_id: str) -> OutputItemObject:
    """Show one output item."""
    item = eval_runs.get_item(tenant, run, output_item_id)
    return OutputItemObject.of(item, eval_id=run.eval_id)
