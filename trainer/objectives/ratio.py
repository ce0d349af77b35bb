"""Ratios of probabilities, per token or per completion."""

import torch
from torch import Tensor

from trainer.objectives.objective import Ratio

#: Largest logarithm that is raised to a power: e^20 is far beyond every clip, and finite.
LOG_MAX = 20.0


def bounded_exp(log_N: Tensor) -> Tensor:
    """``exp``, finite for whatever finite log-probabilities differ by."""
    return torch.exp(log_N.clamp(max=LOG_MAX))


def sums_of_completions(value_N: Tensor, completion_N: Tensor) -> tuple[Tensor, Tensor]:
    """Sum and number of tokens of each completion, both ``[C]``; C is the highest number plus 1."""
    count = int(completion_N.max()) + 1 if len(completion_N) else 0
    sum_C = value_N.new_zeros(count).index_add(0, completion_N, value_N)
    length_C = value_N.new_zeros(count).index_add(0, completion_N, torch.ones_like(value_N))
    return sum_C, length_C.clamp(min=1.0)


def spread_log(log_N: Tensor, completion_N: Tensor, level: Ratio) -> Tensor:
    """Log-ratios of tokens at the level asked for, again ``[N]``, differentiable.

    ``token`` is the input; ``sequence_sum`` gives each token ``Σ_t`` of its completion, the
    log-ratio of the whole completion; ``sequence_mean`` gives it ``Σ_t / length``, the log of the
    tokens' geometric mean.
    """
    if level == "token":
        return log_N
    sum_C, length_C = sums_of_completions(log_N, completion_N)
    if level == "sequence_mean":
        sum_C = sum_C / length_C
    return sum_C[completion_N]
