"""What `"auto"` means in `method.supervised` and `method.dpo`.

Learning rates of preferences are those of the losses' papers and their authors' code, ten times as
much for adapters: DPO arXiv:2305.18290, ORPO 2403.07691, KTO 2402.01306.
"""

from typing import Any

from core.methods import OfflineHyperparameters
from core.registry import BaseModel
from core.resolve.shared import fill_adapter, given, length, weights

BATCH_SIZE = 16
EPOCHS = {"supervised": 3, "dpo": 1}
#: Peak learning rates, by the loss of the method.
LEARNING_RATE = {
    "supervised": {"lora": 2e-4, "full": 2e-5},
    "dpo": {"lora": 1e-5, "full": 1e-6},
    "orpo": {"lora": 8e-5, "full": 8e-6},
    "kto": {"lora": 1e-5, "full": 1e-6},
}
BETA = 0.1
#: Looks at the validation file when nothing is said, besides those at the ends of epochs.
LOOKS = 10
EVAL_SAMPLES = 64


def hyperparameters(
    hyper: OfflineHyperparameters,
    *,
    method: str,
    train_rows: int,
    validation_rows: int,
    model: BaseModel,
) -> dict[str, Any]:
    """Return every hyperparameter with a value; `method` is its type."""
    values = given(hyper)
    multiplier = values.setdefault("learning_rate_multiplier", 1.0)
    values["batch_size"] = min(values.get("batch_size", BATCH_SIZE), train_rows)
    fill_adapter(values, model)
    if method == "dpo":
        values.setdefault("loss", "dpo")
        values.setdefault("beta", BETA)
    rates = LEARNING_RATE[values.get("loss", method)]
    values.setdefault("learning_rate", rates[weights(values["lora_rank"])] * multiplier)
    values["n_epochs"], values["max_steps"] = length(
        values, train_rows, default_epochs=EPOCHS[method], method=method
    )
    values.setdefault("eval_interval", max(1, values["max_steps"] // LOOKS))
    samples = values.get("eval_samples", EVAL_SAMPLES)
    values["eval_samples"] = min(samples, max(1, validation_rows))
    return {name: values[name] for name in type(hyper).model_fields}
