"""Runs of evals: what can be refused before a worker takes one, and what came of it."""

import time
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import undefer

from api.bodies import invalid
from api.pagination import Page, clamp, paginate
from api.parts import Parts
from api.schemas.chat import ChatRequest
from api.schemas.eval_runs import CreateRun, DataSource
from api.services.evals import PAGE, Order, change_live, check_criteria
from api.services.models import resolve
from api.tenancy import Tenant
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.eval_input import chat_fields, read_input
from core.eval_items import BadEntry, ItemSchema, Needed, read_entry
from core.eval_runs import cancel
from core.evals import compares, grader_of
from core.models import Eval, EvalItem, EvalRun, File
from core.queue import EVALS, enqueue_wake
from graders import jsontext
from graders.spec import parse_grader

#: Seconds after which the rest of a body's items is left to the worker: a schema may be slow.
CHECKING_S = 2.0

_KEPT_NOWHERE = {
    "stored_completions": "completions",
    "responses": "responses",
}


class RunNotFound(NotFound):
    """No such run of this eval."""

    code = "eval_run_not_found"
    param = "run_id"

    def __init__(self, run_id: str, eval_id: str) -> None:
        super().__init__(f"No such run: {run_id}. GET /v1/evals/{eval_id}/runs lists them.")


class ItemNotFound(NotFound):
    """No such output item of this run."""

    code = "output_item_not_found"
    param = "output_item_id"

    def __init__(self, item_id: str, run: EvalRun) -> None:
        place = f"/v1/evals/{run.eval_id}/runs/{run.id}/output_items"
        super().__init__(f"No such output item: {item_id}. GET {place} lists them.")


def create_run(tenant: Tenant, parts: Parts, owner: Eval, request: CreateRun) -> EvalRun:
    """Record a queued run and the wake-up of a worker; raises `InvalidRequest` or `NotFound`."""
    check_criteria(parts.judges, owner.testing_criteria)
    for criterion in owner.testing_criteria:
        if compares(parse_grader(grader_of(criterion))):
            raise InvalidRequest(
                "A criterion of this eval compares completions of one prompt, which only the runs"
                " of its own job have; create an eval with another grader.",
                code="unsupported_criterion",
            )
    _check_source(tenant, request.data_source)
    if request.data_source.type != "jsonl":
        _check_sampling(tenant, parts, request.data_source)
    if request.data_source.source.type == "file_content":
        _check_items(owner, request.data_source)
    run = EvalRun(
        project_id=tenant.project_id,
        eval_id=owner.id,
        name=request.name or "",
        model=request.data_source.model or "",
        data_source=_given(request.data_source.model_dump(exclude_none=True)),
        meta=request.metadata,
        per_testing_criteria_results=[
            {"testing_criteria": each["id"], "passed": 0, "failed": 0, "errored": 0}
            for each in owner.testing_criteria
        ],
    )
    change_live(tenant, owner, updated_at=now())
    tenant.session.add(run)
    tenant.session.flush()
    run.name = run.name or run.id
    enqueue_wake(tenant.session, EVALS)
    return run


def _given(value: Any) -> Any:
    """Leave out the nulls of typed clients, but not those inside of items."""
    if not isinstance(value, dict):
        return value
    return {
        name: each if name == "content" else _given(each)
        for name, each in value.items()
        if each is not None
    }


def _check_source(tenant: Tenant, data_source: DataSource) -> None:
    source, place = data_source.source, "data_source.source"
    if source.type in _KEPT_NOWHERE:
        raise InvalidRequest(
            f"This server keeps no {_KEPT_NOWHERE[source.type]} of its own; write them to a JSONL"
            ' file, one {"item": …, "sample": …} a line, and give its id with type \'file_id\'.',
            param=f"{place}.type",
            code="unsupported_source",
        )
    if source.type == "file_id":
        _check_file(tenant, source.id or "", f"{place}.id")


def _check_items(owner: Eval, data_source: DataSource) -> None:
    """Check the items of a body, as many as `CHECKING_S` allows: the worker checks them all."""
    place, content = "data_source.source.content", data_source.source.content
    if not content:
        message = f"Invalid value for '{place}': a run needs at least one item."
        raise InvalidRequest(message, param=place, code="invalid_value")
    schema = ItemSchema(item_schema(owner))
    needed = Needed(owner.testing_criteria, data_source.model_dump(exclude={"source"}))
    until = time.monotonic() + CHECKING_S
    where = place
    try:
        for number, raw in enumerate(content):
            if time.monotonic() > until:
                return
            where = f"{place}[{number}]"
            item = read_entry(raw).item
            schema.check(item)
            needed.see(item)
        where = place
        needed.check()
    except BadEntry as error:
        message = f"Invalid value for '{where}': {error}"
        raise InvalidRequest(message, param=where, code="invalid_item") from error


def item_schema(owner: Eval) -> dict[str, Any] | None:
    """Return the schema of an eval's items."""
    config = owner.data_source_config
    if config["type"] != "custom":
        return None
    found: dict[str, Any] = config["schema"]["properties"]["item"]
    return found


def _check_file(tenant: Tenant, file_id: str, param: str) -> None:
    file = tenant.find(File, file_id)
    if file is None:
        reason = "No such file in this project; upload it with purpose 'evals'."
    elif not file.live:
        reason = "The file was deleted or has expired; upload it again."
    elif file.status == "error":
        reason = f"{file.status_details} Correct the file and upload it again."
    elif file.status != "processed":
        reason = f"It is {file.status} and cannot be read yet; try again later."
    else:
        return
    raise InvalidRequest(f"invalid file: {file_id}. {reason}", param=param)


def _check_sampling(tenant: Tenant, parts: Parts, data_source: DataSource) -> None:
    for name in ("model", "input_messages"):
        if getattr(data_source, name) is None:
            raise InvalidRequest(
                f"Missing required parameter: 'data_source.{name}'. To grade samples that are there"
                " already, use type 'jsonl'.",
                param=f"data_source.{name}",
                code="missing_required_parameter",
            )
    resolve(tenant, parts.registry, data_source.model or "")
    effort = data_source.sampling_params and data_source.sampling_params.reasoning_effort
    if effort not in (None, "none", "default"):
        raise InvalidRequest(
            f"Model {data_source.model} has no reasoning levels; leave reasoning_effort out.",
            param="data_source.sampling_params.reasoning_effort",
            code="invalid_value",
        )
    plain = data_source.model_dump(exclude_none=True)
    read_input(plain["input_messages"], param="data_source.input_messages")
    fields = chat_fields(plain, param="data_source")
    request = {"model": "m", "messages": [{"role": "user", "content": ""}], **fields}
    try:
        # What every item's request would be refused for is said now.
        ChatRequest.model_validate(request)
    except ValidationError as error:
        raise invalid(error, request, prefix="data_source.sampling_params") from error


def get_run(tenant: Tenant, owner: Eval, run_id: str) -> EvalRun:
    """Return a live run of an eval; raises `RunNotFound`."""
    run = tenant.find(EvalRun, run_id)
    if run is None or run.eval_id != owner.id or run.deleted_at is not None:
        raise RunNotFound(run_id, owner.id)
    return run


def list_runs(
    tenant: Tenant,
    owner: Eval,
    *,
    after: str | None,
    limit: int | None,
    order: Order,
    status: str | None,
) -> Page[EvalRun]:
    """Return one page of an eval's runs."""
    mine = tenant.select(EvalRun).where(EvalRun.eval_id == owner.id)
    query = mine.where(EvalRun.deleted_at.is_(None)).options(undefer(EvalRun.data_source))
    return paginate(
        tenant.session,
        query if status is None else query.where(EvalRun.status == status),
        order=(EvalRun.created_at, EvalRun.seq, EvalRun.id),
        cursor=None if after is None else mine.where(EvalRun.id == after),
        limit=clamp(limit, default=PAGE),
        descending=order == "desc",
        weigh=lambda run: len(jsontext.dumps(run.data_source)),
    )


def cancel_run(tenant: Tenant, run: EvalRun) -> EvalRun:
    """Cancel a live run; raises `InvalidRequest` for one that has ended."""
    if not cancel(tenant.session, run.id):
        tenant.session.refresh(run)
        raise InvalidRequest(
            f"{run.id} is {run.status} and cannot be canceled.", code="invalid_run_state"
        )
    tenant.session.refresh(run)
    return run


def delete_run(tenant: Tenant, run: EvalRun) -> None:
    """Delete a run; one that is live is canceled. `core.eval_runs.forget_items` does the rest."""
    cancel(tenant.session, run.id)
    run.deleted_at = now()


def list_items(
    tenant: Tenant,
    run: EvalRun,
    *,
    after: str | None,
    limit: int | None,
    order: Order,
    status: str | None,
) -> Page[EvalItem]:
    """Return one page of a run's output items, in the order of the data source."""
    mine = select(EvalItem).where(EvalItem.run_id == run.id)
    return paginate(
        tenant.session,
        mine if status is None else mine.where(EvalItem.status == status),
        order=(EvalItem.position,),
        cursor=None if after is None else mine.where(EvalItem.id == after),
        limit=clamp(limit, default=PAGE),
        descending=order == "desc",
        weigh=lambda found: len(jsontext.dumps([found.item, found.results, found.sample])),
    )


def get_item(tenant: Tenant, run: EvalRun, item_id: str) -> EvalItem:
    """Return an output item of a run; raises `ItemNotFound`."""
    query = select(EvalItem).where(EvalItem.run_id == run.id, EvalItem.id == item_id)
    found = tenant.session.scalar(query)
    if found is None:
        raise ItemNotFound(item_id, run)
    return found
