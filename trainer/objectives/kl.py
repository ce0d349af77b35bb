"""The distance to the reference: estimators of KL(π ‖ π_ref) from one sample per token."""

from typing import Literal

import torch
from torch import Tensor

from trainer.objectives.ratio import LOG_MAX


def kl_estimate(
    logp_N: Tensor, reference_logp_N: Tensor, estimator: Literal["k1", "k2", "k3"]
) -> Tensor:
    """Estimates per token in nats (http://joschu.net/blog/kl-approx.html), ``x = log π_ref/π``.

    ``k1 = −x`` is unbiased and noisy, ``k2 = x²/2`` is biased and never negative,
    ``k3 = eˣ − x − 1`` is unbiased and never negative.
    """
    x_N = reference_logp_N - logp_N
    if estimator == "k1":
        return -x_N
    if estimator == "k2":
        return 0.5 * x_N * x_N
    # Held as a whole: beyond the bound of eˣ alone, −x would push further away.
    x_N = x_N.clamp(max=LOG_MAX)
    return torch.exp(x_N) - x_N - 1.0


def kl_loss(
    logp_N: Tensor,
    reference_logp_N: Tensor,
    ratio_N: Tensor,
    *,
    estimator: Literal["k1", "k2", "k3"],
    weighted: bool,
) -> Tensor:
    """The penalty as it stands in the loss, per token and differentiable.

    Tokens are drawn from π itself, so the gradient of the divergence is that of the estimate times
    the ratio: ``∇E_π[k] = E[∇k + k · ∇log π] = E[∇(ρ · k)]`` (``weighted``, DeepSeek-V3.2,
    arXiv:2512.02556). Without the ratio, k1 pulls nowhere on average, k3 pulls as KL(π_ref ‖ π)
    would, and k2 pulls as KL(π ‖ π_ref) does, which is why k2 is the one to use unweighted. A
    ratio that is a mean over T tokens counts 1 / T in this.
    """
    estimate_N = kl_estimate(logp_N, reference_logp_N, estimator)
    return ratio_N * estimate_N if weighted else estimate_N


def kl_report(logp_N: Tensor, reference_logp_N: Tensor) -> Tensor:
    """The figure of reports: k3 whatever the penalty is, so that jobs can be compared."""
    with torch.no_grad():
        return kl_estimate(logp_N, reference_logp_N, "k3")
