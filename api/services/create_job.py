"""Creating a job: everything that can be refused before a row is written is refused here.

What needs the bytes of the files (their rows, the grader's variables) is checked by a worker,
which the wake-up written with the job calls.
"""

from api.schemas.jobs import CreateJob
from api.services.job_parts import find_start, keep_adapter, merged, record, training_files
from api.tenancy import Tenant
from core.errors import InvalidRequest
from core.judges import JudgeBook
from core.methods import Method, MethodBlock, Reinforcement, block_of
from core.models import DRY_RUN, Job
from core.registry import Registry
from core.resolve import check_model
from graders.spec import parse_grader


def create_job(
    tenant: Tenant,
    registry: Registry,
    judges: JudgeBook,
    request: CreateJob,
    *,
    cloned_from: str | None = None,
) -> Job:
    """Record a job in `validating_files`, its first event and the wake-up of a worker.

    Raises `InvalidRequest` in the words of OpenAI's API.
    """
    start = find_start(tenant, registry, request.model)
    method = keep_adapter(_method(request), start)
    _refuse_integrations(request)
    check_model(method, start.base)
    block = block_of(method)
    if isinstance(block, Reinforcement):
        check_graders(block, judges)
        _check_dry_run(tenant, block.dry_run)
    if request.validation_file is None:
        _refuse_what_needs_validation(block, method.type)
    files = training_files(tenant, request.training_file, request.validation_file, block)
    return record(
        tenant,
        start,
        method,
        files,
        words="fine-tuning job",
        seed=request.seed,
        metadata=request.metadata,
        suffix=request.suffix,
        cloned_from=cloned_from,
    )


def check_graders(block: Reinforcement, judges: JudgeBook) -> None:
    """Raise InvalidRequest when a grader names a judge that is not there."""
    for name in ("grader", "monitor_grader"):
        grader = getattr(block, name)
        if grader is not None:
            judges.check(parse_grader(grader), param=f"method.reinforcement.{name}")


def _method(request: CreateJob) -> Method:
    """Return the method, with the hyperparameters that stand beside it merged in.

    A job without one is supervised, as OpenAI's are.
    """
    method = request.method or Method(type="supervised")
    if request.hyperparameters is None:
        return method
    beside = request.hyperparameters.model_dump(exclude_none=True)
    return merged(method, beside, prefix="hyperparameters")


def _refuse_integrations(request: CreateJob) -> None:
    if request.integrations:
        kind = request.integrations[0].get("type")
        raise InvalidRequest(
            f"Integration {kind!r} is not available here; leave 'integrations' out and read the"
            " metrics from the job's events or its result file.",
            param="integrations",
            code="unsupported_integration",
        )


def _refuse_what_needs_validation(block: MethodBlock, kind: str) -> None:
    """Refuse what would silently do nothing in a job without a validation file."""
    asked = None
    if block.limits.plateau_window not in ("auto", 0):
        asked = "limits.plateau_window"
    elif isinstance(block, Reinforcement) and block.monitor_grader is not None:
        asked = "monitor_grader"
    if asked is not None:
        raise InvalidRequest(
            f"'{asked}' looks at the validation rows, and the job has none; add a"
            f" 'validation_file', or leave '{asked}' out.",
            param=f"method.{kind}.{asked}",
            code="missing_validation_file",
        )


def _check_dry_run(tenant: Tenant, name: str | None) -> None:
    """Refuse a dry run that is not there or not done; a worker compares it with the job."""
    if name is None:
        return
    dry_run = tenant.find(Job, name)
    if dry_run is None or dry_run.kind != DRY_RUN:
        reason = "No such dry run in this project; GET /v1/fine_tuning/dry_runs lists them."
    elif dry_run.report is None:
        reason = f"It is {dry_run.status} and has no report; wait for it, or leave it out."
    else:
        return
    raise InvalidRequest(
        f"invalid dry_run: {name}. {reason}",
        param="method.reinforcement.dry_run",
        code="invalid_value",
    )
