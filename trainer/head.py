"""What stands between the last hidden states and the logits, besides one matrix."""

from typing import Any


def logit_scale(config: Any) -> float:
    """The factor that a model multiplies its logits by; 1 for most.

    Cohere's models have ``logit_scale``, Granite's divide by ``logits_scaling``. Whatever else a
    head does is noticed by :func:`trainer.architecture.check_architecture`.
    """
    multiplier = getattr(config, "logit_scale", None) or 1.0
    divisor = getattr(config, "logits_scaling", None) or 1.0
    return float(multiplier / divisor)
