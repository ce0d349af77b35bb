"""Advantages: how much better than expected a completion, or a token of it, turned out."""

import itertools
import math

import torch
from torch import Tensor

#: Added to a group's standard deviation, as TRL does.
STD_EPSILON = 1e-4

#: Added to the variance that whitening divides by.
VARIANCE_EPSILON = 1e-8


def group_advantages(scores: list[float | None], *, scale_by_std: bool) -> list[float]:
    """Advantage of each completion of one group.

    ``A_i = (r_i − mean) / (std + 1e-4)`` with the unbiased standard deviation (GRPO,
    arXiv:2402.03300), or ``A_i = r_i − mean`` (Dr. GRPO, arXiv:2503.20783). A completion without a
    score takes no part: it enters neither mean nor deviation, and its advantage is zero.
    """
    known = [s for s in scores if s is not None]
    if not _has_spread(known):
        return [0.0] * len(scores)
    mean = math.fsum(known) / len(known)
    variance = math.fsum((s - mean) * (s - mean) for s in known) / (len(known) - 1)
    scale = math.sqrt(variance) + STD_EPSILON if scale_by_std else 1.0
    return [0.0 if s is None else (s - mean) / scale for s in scores]


def leave_one_out_advantages(scores: list[float | None]) -> list[float]:
    """``A_i = r_i − mean of the others' scores`` (RLOO, arXiv:2402.14740), without a division.

    A completion without a score takes no part, as above.
    """
    known = [s for s in scores if s is not None]
    if not _has_spread(known):
        return [0.0] * len(scores)
    total, others = math.fsum(known), len(known) - 1
    return [0.0 if s is None else s - (total - s) / others for s in scores]


def _has_spread(known: list[float]) -> bool:
    # Equal scores must give exact zeros, or rounding noise would be divided by the epsilon. What is
    # not a number equals nothing, and shows in the loss.
    return len(known) > 1 and any(score != known[0] for score in known)


def discounted_sums(value_N: Tensor, factor: float) -> Tensor:
    """``Σ_{s ≥ t} factor^(s − t) · value_s`` for each token of one completion.

    Of rewards these are the returns.
    """
    backwards = itertools.accumulate(
        reversed(value_N.tolist()), lambda later, value: value + factor * later
    )
    return value_N.new_tensor(list(backwards)).flip(0)


def gae(reward_N: Tensor, value_N: Tensor, *, discount: float, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates of one completion's tokens (arXiv:1506.02438).

    ``δ_t = reward_t + γ · V_(t+1) − V_t`` with 0 after the last token, summed with ``γλ``.
    """
    next_N = torch.cat([value_N[1:], value_N.new_zeros(1)])[: len(value_N)]
    return discounted_sums(reward_N + discount * next_N - value_N, discount * gae_lambda)


def whiten(parts: list[Tensor]) -> list[Tensor]:
    """Shift and scale all tokens of a step together to mean 0 and variance 1 (of the population).

    Equal values become exact zeros. Called on a whole step, so micro-batches change nothing.
    """
    all_N = torch.cat(parts) if parts else torch.zeros(0)
    if not len(all_N) or all_N.min() == all_N.max():
        return [torch.zeros_like(part) for part in parts]
    mean, variance = all_N.mean(), all_N.var(unbiased=False)
    return [(part - mean) / torch.sqrt(variance + VARIANCE_EPSILON) for part in parts]
