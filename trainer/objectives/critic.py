"""The critic's loss, and the figures that say how well it predicts."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ValueOutput:
    """The loss to differentiate, and which tokens' values were held by the clip (bool ``[N]``)."""

    loss: Tensor
    clipped_N: Tensor


def value_loss(
    value_N: Tensor, old_value_N: Tensor, return_N: Tensor, weight_N: Tensor, *, clip: float
) -> ValueOutput:
    """``Σ_t w_t · ½ · max((V − R)², (V_old + clip(V − V_old, ±c) − R)²)`` (PPO, arXiv:1707.06347).

    Args:
        value_N: the critic's values, differentiable.
        old_value_N: its values when advantages were computed.
        return_N: what the values should have been, advantages plus old values.
        weight_N: weights of an update, whose micro-batches' losses add up.
        clip: how far a value may move in one step; 0 for any.
    """
    squared_N = (value_N - return_N).square()
    if clip == 0:
        never_N = torch.zeros_like(value_N, dtype=torch.bool)
        return ValueOutput(0.5 * (weight_N * squared_N).sum(), never_N)
    held_N = old_value_N + (value_N - old_value_N).clamp(-clip, clip)
    held_squared_N = (held_N - return_N).square()
    loss = 0.5 * (weight_N * torch.max(squared_N, held_squared_N)).sum()
    return ValueOutput(loss, (held_squared_N > squared_N).detach())


def explained_variance(value_N: Tensor, return_N: Tensor) -> float | None:
    """``1 − Var(R − V) / Var(R)``: 1 is perfect, 0 no better than a constant; None without spread.

    A critic far below 0 makes advantages noisier than no critic would.
    """
    variance = return_N.var(unbiased=False).item() if len(return_N) else 0.0
    if variance == 0:
        return None
    return 1.0 - (return_N - value_N).var(unbiased=False).item() / variance
