"""What `"auto"` means in `method.reinforcement`."""

from typing import Any

from core.errors import InvalidRequest
from core.methods import Hyperparameters, WarmStart, algorithms
from core.registry import BaseModel
from core.resolve.shared import LORA_RANK, fill_adapter, given, length, weights

BATCH_SIZE = 8
GROUP_SIZE = 8
EPOCHS = 1
MAX_COMPLETION_TOKENS = 256
#: Peak learning rates: LoRA adapters bear, and need, ten times that of full weights.
LEARNING_RATE = {"lora": 1e-4, "full": 1e-5}
WARM_START_LEARNING_RATE = {"lora": 2e-4, "full": 2e-5}
WARM_START_EPOCHS = 3
WARM_START_BATCH_SIZE = 16
#: Evaluations during training when nothing is said.
EVALUATIONS = 4
EVAL_SAMPLES = 64

_PARAM = "method.reinforcement.hyperparameters"


def check_model(hyper: Hyperparameters, model: BaseModel) -> None:
    """Raise InvalidRequest when the model cannot do what the hyperparameters ask."""
    if hyper.reasoning_effort != "default":
        raise InvalidRequest(
            f"Model {model.id} has no reasoning levels; leave reasoning_effort out or set it to"
            " 'default'.",
            param=f"{_PARAM}.reasoning_effort",
            code="invalid_value",
        )
    longest = hyper.max_completion_tokens
    if longest != "auto" and longest >= model.context_tokens:
        raise InvalidRequest(
            f"max_completion_tokens is {longest}, but model {model.id} holds"
            f" {model.context_tokens} tokens for prompt and completion; choose fewer.",
            param=f"{_PARAM}.max_completion_tokens",
            code="invalid_value",
        )


def hyperparameters(
    hyper: Hyperparameters, *, train_rows: int, validation_rows: int, model: BaseModel
) -> dict[str, Any]:
    """Return every hyperparameter with a value."""
    values = given(hyper)
    multiplier = values.setdefault("learning_rate_multiplier", 1.0)
    compute = values.setdefault("compute_multiplier", 1.0)
    values.setdefault("algorithm", "grpo")
    values.setdefault("batch_size", min(BATCH_SIZE, train_rows))
    values.setdefault("group_size", max(2, round(GROUP_SIZE * compute)))
    fill_adapter(values, model)
    values.setdefault("learning_rate", LEARNING_RATE[weights(values["lora_rank"])] * multiplier)
    values.setdefault("temperature", 1.0)
    values.setdefault(
        "max_completion_tokens", min(MAX_COMPLETION_TOKENS, model.context_tokens // 2)
    )
    algorithms.fill(values)
    _refuse_contradictions(values)
    values["n_epochs"], values["max_steps"] = length(
        values, train_rows, default_epochs=EPOCHS, method="reinforcement"
    )
    values.setdefault("eval_interval", max(1, values["max_steps"] // EVALUATIONS))
    samples = values.get("eval_samples", min(EVAL_SAMPLES, max(1, validation_rows // 2)))
    values["eval_samples"] = min(samples, max(1, validation_rows))
    return {name: values[name] for name in Hyperparameters.model_fields}


def warm_start(block: WarmStart, hyper: Hyperparameters, rows: int) -> dict[str, Any]:
    """Return the block with values, for this many demonstrations."""
    values = given(block)
    multiplier = hyper.learning_rate_multiplier
    scale = 1.0 if multiplier == "auto" else multiplier
    rank = LORA_RANK if hyper.lora_rank == "auto" else hyper.lora_rank
    values.setdefault("epochs", WARM_START_EPOCHS)
    values.setdefault("learning_rate", WARM_START_LEARNING_RATE[weights(rank)] * scale)
    values.setdefault("batch_size", min(WARM_START_BATCH_SIZE, max(1, rows)))
    return {name: value for name, value in values.items() if value is not None}


def _refuse_contradictions(values: dict[str, Any]) -> None:
    for name, upper in (
        ("correction_low", "correction_high"),
        ("overlong_buffer_tokens", "max_completion_tokens"),
        ("minibatches", "batch_size"),
    ):
        if values[name] > values[upper]:
            raise InvalidRequest(
                f"{name} is {values[name]}, more than {upper}, which is {values[upper]}; lower the"
                " first or raise the second.",
                param=f"{_PARAM}.{name}",
                code="invalid_value",
            )
