"""The numerical difference of the sampler, and the weights that make up for it.

Sampler and trainer compute the same policy with other kernels, so what was sampled does not quite
follow the policy that is updated. All tensors here are detached.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.objectives.objective import Correction, Ratio
from trainer.objectives.ratio import bounded_exp, spread_log

#: What each correction compares: single tokens, whole completions, or their geometric mean.
_LEVEL: dict[str, Ratio] = {
    "token_truncate": "token",
    "token_mask": "token",
    "icepop": "token",
    "sequence_truncate": "sequence_sum",
    "sequence_mask": "sequence_sum",
    "geometric_mask": "sequence_mean",
}


@dataclass(frozen=True)
class Weights:
    """Factors of the loss ``[N]``, and which tokens were kept (bool). Dropped tokens have 0."""

    weight_N: Tensor
    kept_N: Tensor


def correction_weights(
    old_logp_N: Tensor, sampler_logp_N: Tensor, completion_N: Tensor, correction: Correction
) -> Weights:
    """Weights for ``π_old / μ``, the trainer's over the sampler's probability.

    - ``none``: 1.
    - ``token_truncate``, ``sequence_truncate``: the ratio of the token, or of the completion (the
      product over its tokens), cut at ``low`` and ``high`` (truncated importance sampling,
      https://fengyao.notion.site/off-policy-rl).
    - ``token_mask``, ``sequence_mask``: the same ratios, 0 outside of ``low`` to ``high`` (masked
      importance sampling). ``icepop`` is ``token_mask`` with a lower bound that bites
      (arXiv:2510.18855).
    - ``geometric_mask``: 1 where the geometric mean of a completion's ratios is between ``low`` and
      ``high``, 0 elsewhere; unlike products, means do not grow with length.
    """
    if correction.kind == "none":
        one_N = torch.ones_like(old_logp_N)
        return Weights(one_N, one_N.bool())
    log_N = spread_log(old_logp_N - sampler_logp_N, completion_N, _LEVEL[correction.kind])
    ratio_N = bounded_exp(log_N)
    if correction.kind in ("token_truncate", "sequence_truncate"):
        cut_N = ratio_N.clamp(correction.low, correction.high)
        return Weights(cut_N, torch.ones_like(cut_N, dtype=torch.bool))
    # What is not a number is kept, so that the loss shows it.
    kept_N = ~((ratio_N < correction.low) | (ratio_N > correction.high))
    weight_N = torch.ones_like(ratio_N) if correction.kind == "geometric_mask" else ratio_N
    return Weights(torch.where(kept_N, weight_N, 0.0), kept_N)
