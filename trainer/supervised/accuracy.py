"""Whether a token was the most likely one; logits are needed only where that is not plain."""

import math

import torch
from torch import Tensor

#: Positions whose logits are in memory at once.
SLICE = 512

#: A token with more than half of the probability is the most likely one. A little more, because
#: sums of rounded probabilities may pass 1.
SURE = math.log(0.51)


@torch.no_grad()
def most_likely(hidden_NH: Tensor, weight: Tensor, targets_N: Tensor, logp_N: Tensor) -> Tensor:
    """1 for each token that was the most likely one, else 0: ``[N]`` in float32.

    Of tokens with the same logit, as rounding to bfloat16 makes them, the first counts.

    Args:
        weight: the head's matrix, ``[vocabulary, H]``.
        logp_N: the tokens' log-probabilities, which spare most of them a second look.
    """
    hit_N = logp_N > SURE
    unsure = (~hit_N).nonzero().squeeze(1)
    for part in torch.split(unsure, SLICE):
        logits = hidden_NH[part] @ weight.T
        hit_N[part] = logits.argmax(dim=1) == targets_N[part]
    return hit_N.float()
