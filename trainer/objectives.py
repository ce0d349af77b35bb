"""Advantages and losses as pure functions of tensors.

One optimiser step is taken per rollout, so the policy that is updated is the policy whose
log-probabilities are computed in that step: the old log-probabilities are the current ones,
detached, and need no pass of their own. What is corrected is the sampler's numerical difference.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

#: Added to a group's standard deviation, as TRL does.
STD_EPSILON = 1e-4


def group_advantages(scores: list[float | None], *, scale_by_std: bool) -> list[float]:
    """Advantage of each completion of one group.

    ``A_i = (r_i − mean) / (std + 1e-4)`` with the unbiased standard deviation (GRPO,
    arXiv:2402.03300), or ``A_i = r_i − mean`` (Dr. GRPO, arXiv:2503.20783). A completion without a
    score takes no part: it enters neither mean nor deviation, and its advantage is zero.
    """
    known = [s for s in scores if s is not None]
    if len(known) < 2:
        return [0.0] * len(scores)
    mean = math.fsum(known) / len(known)
    variance = math.fsum((s - mean) * (s - mean) for s in known) / (len(known) - 1)
    # Equal scores must give exact zeros, or rounding noise would be divided by the epsilon.
    if max(known) == min(known):
        return [0.0] * len(scores)
    scale = math.sqrt(variance) + STD_EPSILON if scale_by_std else 1.0
    return [0.0 if s is None else (s - mean) / scale for s in scores]


def token_weight(algorithm: str, *, length: int, completions: int, max_length: int) -> float:
    """Weight of every token of one completion in the step's loss.

    ``grpo``: mean over completions of the mean over tokens, ``1 / (length · completions)``.
    ``dr_grpo``: sum over tokens by a constant, ``1 / (max_length · completions)``.
    Fixed before the loss is computed, so micro-batches cannot change the result.
    """
    if algorithm == "grpo":
        return 1.0 / (length * completions)
    if algorithm == "dr_grpo":
        return 1.0 / (max_length * completions)
    raise ValueError(f"unknown algorithm {algorithm!r}")


@dataclass(frozen=True)
class LossOutput:
    """The loss to differentiate, and per-token figures ``[N]`` for the report (detached)."""

    loss: Tensor
    importance: Tensor
    kl_to_reference: Tensor | None


def policy_loss(
    logp_N: Tensor,
    sampler_logp_N: Tensor,
    advantage_N: Tensor,
    weight_N: Tensor,
    *,
    importance_cap: float,
    reference_logp_N: Tensor | None = None,
    kl_coefficient: float = 0.0,
) -> LossOutput:
    """Policy gradient with token-level truncated importance weights.

    ``L = Σ_t w_t · [ −min(π/μ, C) · A_t · ρ_t + β · k3_t ]`` where ``ρ = π/sg(π)`` carries the
    gradient, ``π/μ`` is trainer over sampler probability, detached and cut at ``C`` (truncated
    importance sampling, https://fengyao.notion.site/off-policy-rl), and
    ``k3 = e^x − x − 1``, ``x = log(π_ref/π)`` (http://joschu.net/blog/kl-approx.html).
    """
    old = logp_N.detach()
    importance = torch.exp(old - sampler_logp_N).clamp(max=importance_cap)
    ratio = torch.exp(logp_N - old)
    per_token = -importance * advantage_N * ratio
    kl = None
    if reference_logp_N is not None:
        x = reference_logp_N - logp_N
        k3 = torch.exp(x) - x - 1.0
        per_token = per_token + kl_coefficient * k3
        kl = k3.detach()
    return LossOutput((weight_N * per_token).sum(), importance, kl)
