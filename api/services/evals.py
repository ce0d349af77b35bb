"""Evals: creating, listing, changing and deleting them."""

from typing import Any, Literal

from sqlalchemy import select, update

from api.pagination import Page, clamp, paginate
from api.schemas.evals import CreateEval, UpdateEval
from api.tenancy import Tenant
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.eval_runs import LIVE, cancel
from core.evals import check_together, grader_of
from core.judges import JudgeBook
from core.models import Eval, EvalRun
from graders import jsontext
from graders.errors import SpecError
from graders.spec import parse_grader

PAGE = 20

Order = Literal["asc", "desc"]
OrderBy = Literal["created_at", "updated_at"]


class EvalNotFound(NotFound):
    """No such eval in the project."""

    code = "eval_not_found"
    param = "eval_id"

    def __init__(self, eval_id: str) -> None:
        super().__init__(f"No such eval: {eval_id}. GET /v1/evals lists them.")


def create_eval(tenant: Tenant, judges: JudgeBook, request: CreateEval) -> Eval:
    """Record an eval; raises `InvalidRequest` when its criteria cannot be run here."""
    check_criteria(judges, request.testing_criteria)
    row = Eval(
        project_id=tenant.project_id,
        name=request.name or "",
        data_source_config=request.data_source_config.kept(),
        testing_criteria=request.testing_criteria,
        meta=request.metadata,
    )
    tenant.session.add(row)
    tenant.session.flush()
    row.name = row.name or row.id
    return row


def check_criteria(judges: JudgeBook, criteria: list[dict[str, Any]]) -> None:
    """Raise `InvalidRequest` for criteria that are too many, or whose judges are not here."""
    try:
        check_together(criteria)
    except SpecError as error:
        message = f"Invalid value for 'testing_criteria': {error}"
        raise InvalidRequest(message, param="testing_criteria", code="invalid_value") from error
    for place, criterion in enumerate(criteria):
        judges.check(parse_grader(grader_of(criterion)), param=f"testing_criteria[{place}]")


def get_eval(tenant: Tenant, eval_id: str) -> Eval:
    """Return a live eval; raises `EvalNotFound`."""
    row = tenant.find(Eval, eval_id)
    if row is None or row.deleted_at is not None:
        raise EvalNotFound(eval_id)
    return row


def list_evals(
    tenant: Tenant, *, after: str | None, limit: int | None, order: Order, order_by: OrderBy
) -> Page[Eval]:
    """Return one page of the project's evals."""
    mine = tenant.select(Eval)
    return paginate(
        tenant.session,
        mine.where(Eval.deleted_at.is_(None)),
        order=(getattr(Eval, order_by), Eval.seq, Eval.id),
        cursor=None if after is None else mine.where(Eval.id == after),
        limit=clamp(limit, default=PAGE),
        descending=order == "desc",
        weigh=lambda row: len(jsontext.dumps([row.data_source_config, row.testing_criteria])),
    )


def update_eval(row: Eval, request: UpdateEval) -> Eval:
    """Change name and metadata, as far as they were given."""
    if request.name is not None:
        row.name = request.name
    if request.metadata is not None:
        row.meta = request.metadata
    row.updated_at = now()
    return row


def change_live(tenant: Tenant, row: Eval, **values: int) -> None:
    """Write to an eval and keep it locked; raises `EvalNotFound` when it was deleted meanwhile."""
    live = update(Eval).where(Eval.id == row.id, Eval.deleted_at.is_(None)).values(values)
    if tenant.session.scalar(live.returning(Eval.id)) is None:
        raise EvalNotFound(row.id)


def delete_eval(tenant: Tenant, row: Eval) -> None:
    """Delete an eval with its runs; those that are live are canceled.

    The items are deleted later, by `core.eval_runs.forget_items`: there may be a million.
    """
    # The eval first: whoever creates a run of it holds its row until that run is seen below.
    change_live(tenant, row, deleted_at=now())
    mine = select(EvalRun.id).where(EvalRun.eval_id == row.id, EvalRun.deleted_at.is_(None))
    live = mine.where(EvalRun.status.in_(LIVE))
    for run_id in tenant.session.scalars(live.order_by(EvalRun.id)).all():
        cancel(tenant.session, run_id)
    gone = update(EvalRun).where(EvalRun.id.in_(mine)).values(deleted_at=now())
    tenant.session.execute(gone.execution_options(synchronize_session=False))
