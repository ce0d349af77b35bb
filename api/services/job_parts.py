"""What jobs and dry runs are made from: a model to start with, a method, files of the project."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from api.bodies import invalid
from api.quotas import room_for_job
from api.services.models import base_of, find_trained, way_out
from api.tenancy import Tenant
from core.errors import InvalidRequest
from core.events import add_event
from core.job_evals import ensure_eval
from core.methods import (
    Method,
    MethodBlock,
    Reinforcement,
    block_of,
    chosen,
    normalise,
    with_block,
)
from core.models import TRAINING, Checkpoint, File, Job
from core.queue import LIGHT, enqueue_wake
from core.registry import BaseModel, Registry

#: One more than the largest seed.
SEEDS = 2**31

#: The hyperparameters that make an adapter what it is.
_ADAPTER = ("lora_rank", "lora_alpha", "lora_targets")


@dataclass(frozen=True)
class Start:
    """Where training starts: a base model, and the trained model on it to go on from, if any.

    `adapter` is how that model was trained: its adapter can only go on as it is.
    """

    base: BaseModel
    init_from: str | None = None
    adapter: Mapping[str, Any] = field(default_factory=dict)


def find_start(tenant: Tenant, registry: Registry, name: str) -> Start:
    """Return where training from this model starts; raises `InvalidRequest`."""
    base = registry.get(name)
    if base is not None:
        return Start(base=base)
    checkpoint = find_trained(tenant, name)
    if checkpoint is not None:
        base = registry.get(base_of(tenant, checkpoint))
        if base is not None:
            parent = tenant.session.get_one(Job, checkpoint.job_id)
            return Start(base, checkpoint.name, _adapter_of(parent, checkpoint))
    raise InvalidRequest(
        f"Model {name} is not available for fine-tuning or does not exist."
        f" {way_out(tenant, registry, name)}",
        code="model_not_available",
    )


def _adapter_of(job: Job, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the fields of the adapter that a job trained; of full weights only the rank, 0."""
    if checkpoint.kind != "adapter":
        return {"lora_rank": 0}
    values = job.hyperparameters
    return {name: values[name] for name in _ADAPTER if name in values}


def merged(method: Method, beside: Mapping[str, Any], *, prefix: str) -> Method:
    """Return the method with hyperparameters that stand beside it, under `prefix`, merged in.

    Raises `InvalidRequest` for one out of range, and for one that is also in the block and differs.
    """
    block = block_of(method)
    given = block.hyperparameters.model_dump(exclude_unset=True)
    for name, value in beside.items():
        if given.get(name, value) != value:
            place = f"{prefix}.{name}" if prefix else name
            raise InvalidRequest(
                f"{place} and method.{method.type}.hyperparameters.{name} differ;"
                " set only the second.",
                param=place,
            )
    try:
        hyperparameters = type(block.hyperparameters).model_validate(given | dict(beside))
    except ValidationError as error:
        raise invalid(error, beside, prefix=prefix) from error
    return with_block(method, block.model_copy(update={"hyperparameters": hyperparameters}))


def keep_adapter(method: Method, start: Start) -> Method:
    """Return the method with the adapter of the model that training goes on from.

    Raises `InvalidRequest` when the method asks for another one.
    """
    block = block_of(method)
    asked = block.hyperparameters
    # All weights can be trained from an adapter: it is folded in first.
    if not start.adapter or asked.lora_rank == 0:
        return method
    for name, kept in start.adapter.items():
        if getattr(asked, name) not in ("auto", kept):
            raise InvalidRequest(
                f"{start.init_from} was trained with {name} {_shown(kept)}, so training cannot go"
                f" on with {_shown(getattr(asked, name))}; leave {name} out, or set lora_rank to 0"
                " to train all weights.",
                param=f"method.{method.type}.hyperparameters.{name}",
            )
    kept_block = block.model_copy(
        update={"hyperparameters": asked.model_copy(update=dict(start.adapter))}
    )
    return with_block(method, kept_block)


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else f"{value}"


def training_files(
    tenant: Tenant, training_file: str, validation_file: str | None, block: MethodBlock
) -> tuple[File, File | None]:
    """Return training and validation file, having checked them and the one of a warm start.

    Raises `InvalidRequest` that names the file and the way out.
    """
    training = _file(tenant, training_file, "training_file")
    validation = _optional_file(tenant, validation_file, "validation_file")
    _optional_file(tenant, _warm_start_file(block), "method.reinforcement.warm_start.file")
    if validation is not None and validation.sha256 == training.sha256:
        raise InvalidRequest(
            "training_file and validation_file have the same content; validate on rows that"
            " training does not see, or leave validation_file out.",
            param="validation_file",
        )
    return training, validation


def _warm_start_file(block: MethodBlock) -> str | None:
    if isinstance(block, Reinforcement) and block.warm_start is not None:
        return block.warm_start.file
    return None


def _optional_file(tenant: Tenant, file_id: str | None, param: str) -> File | None:
    return None if file_id is None else _file(tenant, file_id, param)


def _file(tenant: Tenant, file_id: str, param: str) -> File:
    """Return a file that can train, or raise the error that names it and the way out."""
    file = tenant.find(File, file_id)
    name = param.removeprefix("method.reinforcement.")
    if file is None:
        way_out = "No such file in this project; upload it with purpose 'fine-tune'."
    elif not file.live:
        way_out = "The file was deleted or has expired; upload it again."
    elif file.purpose != "fine-tune":
        way_out = f"Its purpose is '{file.purpose}'; upload it with purpose 'fine-tune'."
    elif file.status == "error":
        way_out = f"{file.status_details} Correct the file and upload it again."
    elif file.status != "processed":
        raise InvalidRequest(
            f"File '{file_id}' is still being processed and is not ready to be used for"
            " fine-tuning. Please try again later.",
            param=param,
        )
    else:
        return file
    raise InvalidRequest(f"invalid {name}: {file_id}. {way_out}", param=param)


def record(
    tenant: Tenant,
    start: Start,
    method: Method,
    files: tuple[File, File | None],
    *,
    words: str,
    seed: int | None,
    metadata: dict[str, str] | None,
    **columns: Any,
) -> Job:
    """Add a row in `validating_files`, its first event and the wake-up of a worker.

    `words` is what the event calls it, `columns` are those that only its kind of job has.
    """
    room_for_job(tenant)
    training, validation = files
    shown = normalise(method)
    job = Job(
        project_id=tenant.project_id,
        model=start.base.id,
        init_from=start.init_from,
        method=shown,
        hyperparameters=chosen(shown)["hyperparameters"],
        training_file=training.id,
        validation_file=validation.id if validation else None,
        warm_start_file=_warm_start_file(block_of(method)),
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        meta=metadata,
        integrations=[],
        result_files=[],
        **columns,
    )
    tenant.session.add(job)
    tenant.session.flush()
    if job.kind == TRAINING and method.type == "reinforcement":
        ensure_eval(tenant.session, job)
    add_event(tenant.session, job.id, f"Created {words}: {job.id}", data={})
    enqueue_wake(tenant.session, LIGHT)
    return job
