"""Replacing `"auto"`: the heuristics, as values that the job object then shows."""

from typing import Any

from core.methods import Method, Reinforcement, block_of
from core.registry import BaseModel
from core.resolve import offline, reinforcement
from core.resolve.shared import check_adapter, cut_short, resolve_limits, unused_adapter

__all__ = ["check_model", "cut_short", "resolve", "unused_adapter"]


def check_model(method: Method, model: BaseModel) -> None:
    """Raise InvalidRequest when the model cannot do what the hyperparameters ask."""
    block = block_of(method)
    check_adapter(block.hyperparameters, model, method=method.type)
    if isinstance(block, Reinforcement):
        reinforcement.check_model(block.hyperparameters, model)


def resolve(
    method: Method, *, train_rows: int, validation_rows: int, warm_rows: int, model: BaseModel
) -> dict[str, Any]:
    """Return the normalised method with every "auto" replaced by a value.

    Resolving its own result changes nothing, so a shown job can be sent again. Row counts are those
    of the files, from 1 (`validation_rows` and `warm_rows`, the demonstrations, may be 0 when the
    job has none). Raises InvalidRequest like `check_model`, or when `max_steps` is too large.
    """
    check_model(method, model)
    block = block_of(method)
    resolved = block.model_dump(exclude_none=True)
    resolved["limits"] = resolve_limits(block.limits)
    if isinstance(block, Reinforcement):
        hyper = block.hyperparameters
        resolved["hyperparameters"] = reinforcement.hyperparameters(
            hyper, train_rows=train_rows, validation_rows=validation_rows, model=model
        )
        if block.warm_start is not None:
            resolved["warm_start"] = reinforcement.warm_start(block.warm_start, hyper, warm_rows)
    else:
        resolved["hyperparameters"] = offline.hyperparameters(
            block.hyperparameters,
            method=method.type,
            train_rows=train_rows,
            validation_rows=validation_rows,
            model=model,
        )
    return {"type": method.type, method.type: resolved}
