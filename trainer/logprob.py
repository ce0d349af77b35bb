"""Log-probabilities of chosen tokens without the full logits matrix.

``log p(y) = (h·W_y)/T − logsumexp_v((h·W_v)/T)``, taken over slices of positions: forward keeps
one normaliser per position, backward computes the slice's probabilities again. Peak memory is
``slice × vocabulary`` instead of ``positions × vocabulary``.
"""

from typing import Any

import torch
from torch import Tensor

#: Positions per slice: 512 × 49,152 float32 logits are 100 MB.
SLICE = 512


class _ChunkedLogprob(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        logps, entropies, normalisers = [], [], []
        slices = _Slices(hidden, weight, temperature)
        for part in slices.parts:
            logits = slices.logits(part)
            chosen = logits.gather(1, targets[part, None]).squeeze(1)
            normaliser = logits.logsumexp(dim=-1)
            # Σ p·logit, with p written over by the product: one buffer less.
            products = slices.probabilities(logits, normaliser).mul_(logits)
            entropies.append(normaliser - products.sum(dim=-1))
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
        slices = _Slices(hidden, weight, ctx.temperature)
        for part in slices.parts:
            logits = slices.logits(part)
            scale = (grad_logp[part] / ctx.temperature)[:, None]
            # d logp / d logits = onehot(y) − softmax
            grad_logits = slices.probabilities(logits, normalisers[part]).mul_(-scale)
            grad_logits.scatter_add_(1, targets[part, None], scale)
            compact = slices.compact(grad_logits)
            grad_hidden[part] = compact @ weight
            if grad_weight is not None:
                grad_weight += compact.T @ hidden[part]
        return (
            grad_hidden,
            None if grad_weight is None else grad_weight.to(weight.dtype),
            None,
            None,
        )


class _Slices:
    """The logits of one slice of positions after the other, in buffers that are used again.

    Fresh memory for every slice would cost more than the arithmetic on it.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, temperature: float) -> None:
        self._hidden, self._weight, self._temperature = hidden, weight, temperature
        rows, vocabulary = min(SLICE, len(hidden)), len(weight)
        self._products = hidden.new_empty(rows, vocabulary)
        self._logits = hidden.new_empty(rows, vocabulary, dtype=torch.float32)
        self._probabilities = torch.empty_like(self._logits)
        self.parts = [slice(i, min(i + SLICE, len(hidden))) for i in range(0, len(hidden), SLICE)]

    def logits(self, part: slice) -> Tensor:
        """Logits over the temperature, float32."""
        rows = part.stop - part.start
        torch.mm(self._hidden[part], self._weight.T, out=self._products[:rows])
        return torch.div(self._products[:rows], self._temperature, out=self._logits[:rows])

    def probabilities(self, logits: Tensor, normaliser: Tensor) -> Tensor:
        """``exp(logits − normaliser)``, float32."""
        out = self._probabilities[: len(logits)]
        return torch.sub(logits, normaliser[:, None], out=out).exp_()

    def compact(self, values: Tensor) -> Tensor:
        """The values in the model's type."""
        return self._products[: len(values)].copy_(values)


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
