"""Creating a dry run: a job that samples and grades, and trains nothing."""

from typing import Any

from pydantic import ValidationError

from api.bodies import invalid
from api.schemas.dry_runs import BESIDE, CreateDryRun
from api.services.job_parts import find_start, keep_adapter, merged, record, training_files
from api.tenancy import Tenant
from core.dry_runs import check_size
from core.errors import InvalidRequest
from core.ids import new_id
from core.judges import JudgeBook
from core.methods import Method, Reinforcement, reinforcement_of
from core.models import DRY_RUN, Job
from core.registry import Registry
from core.resolve import check_model
from graders.spec import parse_grader

#: Ahead of jobs that train: a dry run is short, and somebody waits for it.
PRIORITY = 1


def create_dry_run(
    tenant: Tenant, registry: Registry, judges: JudgeBook, request: CreateDryRun
) -> Job:
    """Record a dry run in `validating_files`, its first event and the wake-up of a worker.

    Raises `InvalidRequest` as the creation of a job does.
    """
    start = find_start(tenant, registry, request.model)
    method = keep_adapter(_method(request), start)
    check_model(method, start.base)
    check_size(request.rows, request.samples_per_row)
    block = reinforcement_of(method)
    place = "grader" if request.method is None else "method.reinforcement.grader"
    judges.check(parse_grader(block.grader), param=place)
    files = training_files(tenant, request.training_file, request.validation_file, block)
    return record(
        tenant,
        start,
        method,
        files,
        words="dry run",
        seed=request.seed,
        metadata=request.metadata,
        id=new_id("dryrun-"),
        kind=DRY_RUN,
        priority=PRIORITY,
        plan={"rows": request.rows, "samples_per_row": request.samples_per_row},
    )


def _method(request: CreateDryRun) -> Method:
    """Return the method of the job that the dry run is for."""
    if (request.grader is None) == (request.method is None):
        raise InvalidRequest(
            "Give exactly one of 'grader' and 'method', the method that a job would have.",
            param="grader" if request.method is None else "method",
            code="invalid_value",
        )
    method = request.method or _of_grader(request.grader)
    beside = request.model_dump(include=set(BESIDE), exclude_none=True)
    reinforcement_of(method)
    return merged(method, beside, prefix="")


def _of_grader(grader: dict[str, Any] | None) -> Method:
    block = {"grader": grader}
    try:
        return Method(type="reinforcement", reinforcement=Reinforcement.model_validate(block))
    except ValidationError as error:
        raise invalid(error, block) from error
