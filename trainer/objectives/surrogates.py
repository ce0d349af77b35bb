"""Surrogates: what is minimised in place of the expected reward, per token.

All have the policy gradient ``−A · ∇log π`` where the ratio is 1, and differ in what becomes of it
as the ratio moves away.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.objectives.objective import Objective


@dataclass(frozen=True)
class Term:
    """A loss per token ``[N]``, and which tokens' ratio was cut, as too low or too high (bool)."""

    loss_N: Tensor
    clipped_low_N: Tensor
    clipped_high_N: Tensor


def surrogate(ratio_N: Tensor, logp_N: Tensor, advantage_N: Tensor, objective: Objective) -> Term:
    """The surrogate that the objective names."""
    if objective.surrogate == "clip":
        return _clip(ratio_N, advantage_N, objective)
    if objective.surrogate == "cispo":
        return _cispo(ratio_N, logp_N, advantage_N, objective.weight_cap)
    return _sapo(ratio_N, advantage_N, objective)


def _clip(ratio_N: Tensor, advantage_N: Tensor, objective: Objective) -> Term:
    """``−min(min(r, δ) · A, clip(r, 1 − ε_low, 1 + ε_high) · A)``.

    PPO's clip (arXiv:1707.06347) with bounds of their own on both sides (DAPO, arXiv:2503.14476).
    δ, where it is not 0, bounds the side that the minimum leaves open, that of a negative advantage
    (dual clip, arXiv:1912.09729; two-sided clip, arXiv:2505.07291).
    """
    low, high = 1.0 - objective.clip_low, 1.0 + objective.clip_high
    clipped_N = ratio_N.clamp(low, high)
    capped_N = ratio_N.clamp(max=objective.dual_clip) if objective.dual_clip else ratio_N
    loss_N = -torch.min(capped_N * advantage_N, clipped_N * advantage_N)
    too_high_N = (ratio_N > high) & (advantage_N > 0)
    if objective.dual_clip:
        too_high_N = too_high_N | ((ratio_N > objective.dual_clip) & (advantage_N < 0))
    return Term(loss_N, (ratio_N < low) & (advantage_N < 0), too_high_N)


def _cispo(ratio_N: Tensor, logp_N: Tensor, advantage_N: Tensor, cap: float) -> Term:
    """``−sg(min(r, cap)) · A · log π`` (CISPO, arXiv:2506.13585): every token keeps a gradient.

    The cap is a weight, not a distance from 1.
    """
    weight_N = ratio_N.detach().clamp(max=cap)
    never_N = torch.zeros_like(ratio_N, dtype=torch.bool)
    return Term(-weight_N * advantage_N * logp_N, never_N, ratio_N > cap)


def _sapo(ratio_N: Tensor, advantage_N: Tensor, objective: Objective) -> Term:
    """``−σ(τ(r − 1)) · 4/τ · A`` (SAPO, arXiv:2511.20347): a gate that fades, and clips nothing."""
    tau_N = torch.where(
        advantage_N > 0, objective.temperature_positive, objective.temperature_negative
    ).to(ratio_N.dtype)
    gate_N = torch.sigmoid(tau_N * (ratio_N - 1.0)) * 4.0 / tau_N
    never_N = torch.zeros_like(ratio_N, dtype=torch.bool)
    return Term(-gate_N * advantage_N, never_N, never_N)
