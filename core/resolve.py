"""Replacing `"auto"`: the heuristics, as values that the job object then shows."""

import math
from typing import Any

from core.errors import InvalidRequest
from core.methods import (
    MAX_EPOCHS,
    Hyperparameters,
    Method,
    WarmStart,
    algorithms,
    reinforcement_of,
)
from core.methods.limits import Limits, ReinforcementLimits
from core.registry import BaseModel

BATCH_SIZE = 8
GROUP_SIZE = 8
MAX_COMPLETION_TOKENS = 256
LORA_RANK = 16
#: Peak learning rates: LoRA adapters bear, and need, ten times that of full weights.
RL_LEARNING_RATE = {"lora": 1e-4, "full": 1e-5}
WARM_START_LEARNING_RATE = {"lora": 2e-4, "full": 2e-5}
WARM_START_EPOCHS = 3
WARM_START_BATCH_SIZE = 16
#: Evaluations during training when nothing is said.
EVALUATIONS = 4
EVAL_SAMPLES = 64
#: Nats per token: two bfloat16 implementations of a model differ by 0.002 to 0.06.
MAX_MISMATCH = 0.2


def check_model(method: Method, model: BaseModel) -> None:
    """Raise InvalidRequest when the model cannot do what the hyperparameters ask."""
    hyper = reinforcement_of(method).hyperparameters
    if hyper.reasoning_effort != "default":
        raise InvalidRequest(
            f"Model {model.id} has no reasoning levels; leave reasoning_effort out or set it to"
            " 'default'.",
            param="method.reinforcement.hyperparameters.reasoning_effort",
            code="invalid_value",
        )
    longest = hyper.max_completion_tokens
    if longest != "auto" and longest >= model.context_tokens:
        raise InvalidRequest(
            f"max_completion_tokens is {longest}, but model {model.id} holds"
            f" {model.context_tokens} tokens for prompt and completion; choose fewer.",
            param="method.reinforcement.hyperparameters.max_completion_tokens",
            code="invalid_value",
        )


def resolve(
    method: Method, *, train_rows: int, validation_rows: int, warm_rows: int, model: BaseModel
) -> dict[str, Any]:
    """Return the normalised method with every "auto" replaced by a value.

    Resolving its own result changes nothing, so a shown job can be sent again. Row counts are those
    of the files, from 1 (`validation_rows` and `warm_rows`, the demonstrations, may be 0 when the
    job has none). Raises InvalidRequest like `check_model`, or when `max_steps` is too large.
    """
    check_model(method, model)
    block = reinforcement_of(method)
    hyper = block.hyperparameters
    resolved = block.model_dump(exclude_none=True)
    resolved["hyperparameters"] = _hyperparameters(hyper, train_rows, validation_rows, model)
    resolved["limits"] = _limits(block.limits)
    if block.warm_start is not None:
        resolved["warm_start"] = _warm_start(block.warm_start, hyper, warm_rows)
    return {"type": method.type, method.type: resolved}


def _hyperparameters(
    hyper: Hyperparameters, train_rows: int, validation_rows: int, model: BaseModel
) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: value for name, value in hyper.model_dump().items() if value != "auto"
    }
    multiplier = values.setdefault("learning_rate_multiplier", 1.0)
    compute = values.setdefault("compute_multiplier", 1.0)
    values.setdefault("algorithm", "grpo")
    values.setdefault("batch_size", min(BATCH_SIZE, train_rows))
    values.setdefault("group_size", max(2, round(GROUP_SIZE * compute)))
    values.setdefault("lora_rank", LORA_RANK)
    values.setdefault("learning_rate", RL_LEARNING_RATE[_weights(values["lora_rank"])] * multiplier)
    values.setdefault("lora_alpha", 2.0 * values["lora_rank"] or 1.0)
    values.setdefault("lora_targets", "all-linear")
    values.setdefault("temperature", 1.0)
    values.setdefault(
        "max_completion_tokens", min(MAX_COMPLETION_TOKENS, model.context_tokens // 2)
    )
    algorithms.fill(values)
    values["n_epochs"], values["max_steps"] = _length(values, train_rows)
    values.setdefault("eval_interval", max(1, values["max_steps"] // EVALUATIONS))
    samples = values.get("eval_samples", min(EVAL_SAMPLES, max(1, validation_rows // 2)))
    values["eval_samples"] = min(samples, max(1, validation_rows))
    return {name: values[name] for name in Hyperparameters.model_fields}


def _length(values: dict[str, Any], train_rows: int) -> tuple[int, int]:
    """Return epochs and steps: the shorter of the two when both are given."""
    steps_per_epoch = train_rows / values["batch_size"]
    wanted = values.get("max_steps")
    if wanted is not None and "n_epochs" not in values:
        epochs = math.ceil(wanted / steps_per_epoch)
        if epochs > MAX_EPOCHS:
            raise InvalidRequest(
                f"max_steps {wanted} would read the {train_rows} training rows {epochs} times;"
                f" at most {MAX_EPOCHS} are allowed, so choose fewer steps or add rows.",
                param="method.reinforcement.hyperparameters.max_steps",
                code="invalid_value",
            )
        return epochs, wanted
    epochs = values.get("n_epochs", 1)
    steps = math.ceil(steps_per_epoch * epochs)
    return epochs, steps if wanted is None else min(wanted, steps)


def _warm_start(warm_start: WarmStart, hyper: Hyperparameters, warm_rows: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: value for name, value in warm_start.model_dump().items() if value != "auto"
    }
    multiplier = hyper.learning_rate_multiplier
    scale = 1.0 if multiplier == "auto" else multiplier
    rank = LORA_RANK if hyper.lora_rank == "auto" else hyper.lora_rank
    values.setdefault("epochs", WARM_START_EPOCHS)
    values.setdefault("learning_rate", WARM_START_LEARNING_RATE[_weights(rank)] * scale)
    values.setdefault("batch_size", min(WARM_START_BATCH_SIZE, max(1, warm_rows)))
    return {name: value for name, value in values.items() if value is not None}


def _limits(limits: Limits) -> dict[str, Any]:
    """The limits that hold: those that are left to us and unlimited are left out."""
    values = {name: value for name, value in limits.model_dump().items() if value != "auto"}
    values.setdefault("plateau_window", 0)
    if isinstance(limits, ReinforcementLimits):
        values.setdefault("min_entropy", 0.0)
        values.setdefault("max_kl", 0.0)
        values.setdefault("max_mismatch", MAX_MISMATCH)
    return values


def _weights(lora_rank: int) -> str:
    return "lora" if lora_rank else "full"
