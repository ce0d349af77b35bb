"""What the methods resolve alike: adapters, the length of a training, limits."""

import math
from typing import Any

from pydantic import BaseModel as Fields

from core.errors import InvalidRequest
from core.methods import (
    MAX_EPOCHS,
    Hyperparameters,
    Limits,
    OfflineHyperparameters,
    ReinforcementLimits,
)
from core.registry import BaseModel

LORA_RANK = 16
#: Nats per token: two bfloat16 implementations of a model differ by 0.002 to 0.06.
MAX_MISMATCH = 0.2


def given(block: Fields) -> dict[str, Any]:
    """Return the fields of a block that hold a value."""
    return {name: value for name, value in block.model_dump().items() if value != "auto"}


def check_adapter(
    hyper: Hyperparameters | OfflineHyperparameters, model: BaseModel, *, method: str
) -> None:
    """Raise InvalidRequest when no such adapter can be trained on the model."""
    if hyper.quantization == "none":
        return
    if hyper.lora_rank == 0:
        problem = "4-bit weights cannot be trained; set lora_rank for an adapter on them"
    elif not model.nf4:
        problem = f"Model {model.id} is not trained in 4 bits here; leave quantization out"
    else:
        return
    raise InvalidRequest(
        f"quantization is {hyper.quantization!r}, but {problem}.",
        param=f"method.{method}.hyperparameters.quantization",
        code="invalid_value",
    )


def fill_adapter(values: dict[str, Any], model: BaseModel) -> None:
    """Set what is not set yet of the adapter."""
    values.setdefault("lora_rank", LORA_RANK)
    values.setdefault("lora_alpha", 2.0 * values["lora_rank"] or 1.0)
    values.setdefault("lora_targets", list(model.lora_targets or ()) or "all-linear")


def unused_adapter(values: dict[str, Any], model: BaseModel) -> list[str]:
    """Return a sentence for each resolved value that says something of an adapter where none is."""
    if values["lora_rank"] != 0:
        return []
    automatic = {"lora_rank": 0}
    fill_adapter(automatic, model)
    return [
        f"{name} has no effect with lora_rank 0."
        for name, value in automatic.items()
        if values[name] != value
    ]


def weights(lora_rank: int) -> str:
    """Return the word for what is trained, by which learning rates are listed."""
    return "lora" if lora_rank else "full"


def length(
    values: dict[str, Any], train_rows: int, *, default_epochs: int, method: str
) -> tuple[int, int]:
    """Return epochs and steps: the shorter of the two when both are given.

    Raises InvalidRequest when the steps asked for would read the rows too often.
    """
    steps_per_epoch = train_rows / values["batch_size"]
    wanted = values.get("max_steps")
    if wanted is not None and "n_epochs" not in values:
        epochs = math.ceil(wanted / steps_per_epoch)
        if epochs > MAX_EPOCHS:
            raise InvalidRequest(
                f"max_steps {wanted} would read the {train_rows} training rows {epochs} times;"
                f" at most {MAX_EPOCHS} are allowed, so choose fewer steps or add rows.",
                param=f"method.{method}.hyperparameters.max_steps",
                code="invalid_value",
            )
        return epochs, wanted
    epochs = values.get("n_epochs", default_epochs)
    steps = math.ceil(steps_per_epoch * epochs)
    return epochs, steps if wanted is None else min(wanted, steps)


def cut_short(values: dict[str, Any], train_rows: int) -> list[str]:
    """Return a sentence when resolved steps end a job epochs before its ``n_epochs`` would.

    So they do in a job that was shown, and sent again with more epochs or a smaller batch.
    """
    epochs, steps = values["n_epochs"], values["max_steps"]
    steps_per_epoch = train_rows / values["batch_size"]
    if steps > steps_per_epoch * (epochs - 1):
        return []
    return [
        f"max_steps ends the job after {steps} of the {math.ceil(steps_per_epoch * epochs)} steps"
        f" of n_epochs {epochs}; set it to 'auto' for all of them."
    ]


def resolve_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits that hold: those that are left to us and unlimited are left out."""
    values = given(limits)
    values.setdefault("plateau_window", 0)
    if isinstance(limits, ReinforcementLimits):
        values.setdefault("min_entropy", 0.0)
        values.setdefault("max_kl", 0.0)
        values.setdefault("max_mismatch", MAX_MISMATCH)
    return values
