"""Log-probabilities of chosen tokens without the full logits matrix.

``log p(y) = (h·W_y)/T − logsumexp_v((h·W_v)/T)``, taken over slices of positions: forward keeps
one normaliser per position, backward computes the slice's probabilities again. Peak memory is
``slice × vocabulary`` instead of ``positions × vocabulary``.
"""

from typing import Any

import torch
from torch import Tensor

#: Positions per slice: 128 × 49,152 float32 logits are 25 MB.
SLICE = 128


class _ChunkedLogprob(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        logps, entropies, normalisers = [], [], []
        for start in range(0, len(targets), SLICE):
            logits = _logits(hidden[start : start + SLICE], weight, temperature)
            chosen = logits.gather(1, targets[start : start + SLICE, None]).squeeze(1)
            normaliser = logits.logsumexp(dim=-1)
            probabilities = (logits - normaliser[:, None]).exp_()
            entropies.append(normaliser - probabilities.mul_(logits).sum(dim=-1))
            logps.append(chosen - normaliser)
            normalisers.append(normaliser)
        ctx.save_for_backward(hidden, weight, targets, torch.cat(normalisers))
        ctx.temperature = temperature
        entropy = torch.cat(entropies)
        ctx.mark_non_differentiable(entropy)
        return torch.cat(logps), entropy

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor | None, None, None]:
        hidden, weight, targets, normalisers = ctx.saved_tensors
        grad_logp: Tensor = grads[0]
        grad_hidden = torch.empty_like(hidden)
        wants_weight = ctx.needs_input_grad[1]
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if wants_weight else None
        for start in range(0, len(targets), SLICE):
            part = slice(start, start + SLICE)
            logits = _logits(hidden[part], weight, ctx.temperature)
            scale = (grad_logp[part] / ctx.temperature)[:, None]
            # d logp / d logits = onehot(y) − softmax
            grad_logits = (logits - normalisers[part, None]).exp_().mul_(-scale)
            grad_logits.scatter_add_(1, targets[part, None], scale)
            compact = grad_logits.to(weight.dtype)
            grad_hidden[part] = compact @ weight
            if grad_weight is not None:
                grad_weight += compact.T @ hidden[part]
        return (
            grad_hidden,
            None if grad_weight is None else grad_weight.to(weight.dtype),
            None,
            None,
        )


def chunked_logprob(
    hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy of the next-token distribution at each position.

    Args:
        hidden: last hidden states, ``[N, H]``.
        weight: output embedding, ``[V, H]``.
        targets: chosen token ids, ``[N]``.
        temperature: divides the logits, as the sampler's does.

    Returns:
        ``logp [N]`` (differentiable) and ``entropy [N]`` in nats (not differentiable), float32.
    """
    logp, entropy = _ChunkedLogprob.apply(hidden, weight, targets, temperature)
    return logp, entropy


def _logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    return (hidden @ weight.T).float().div_(temperature)
