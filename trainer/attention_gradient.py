"""The backward pass of attention over a group, by matrix products.

Completions are short, and so is what they see: all scores of a group fit into the processor's
cache, where products over whole blocks are several times as fast as the kernel that goes tile by
tile. What is exponentiated or subtracted is computed in float32; the other products in the model's
type, with float32 sums.
"""

import torch
from torch import Tensor

#: Scores, ``B · heads · L · M``, above which the tiled kernel is taken: it does not hold them all.
MOST_SCORES = 8_000_000

_tiled = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def attention_gradient(
    grad_out: Tensor,
    inputs: tuple[Tensor, Tensor, Tensor],
    out: Tensor,
    log_sums: Tensor,
    *,
    mask: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values.

    ``P = exp(scale·QKᵀ + mask − log_sums)``, ``dV = Pᵀ·dO``,
    ``dS = P ∘ (dO·Vᵀ − rowsum(dO ∘ O))``, ``dQ = scale·dS·K``, ``dK = scale·dSᵀ·Q``.

    Args:
        grad_out, out: ``[B, H, L, D]``.
        inputs: queries ``[B, H, L, D]``, keys and values ``[B, H, M, D]``.
        log_sums: of the forward pass, ``[B, H, L]``.
        mask: added to the scores, ``[1, 1, L, M]``; ``None`` is causal.
    """
    query, key, value = inputs
    length, seen = query.shape[2], key.shape[2]
    if query.shape[0] * query.shape[1] * length * seen > MOST_SCORES:
        return _tiled(
            grad_out, query, key, value, out, log_sums, 0.0, mask is None,
            attn_mask=mask, scale=scale,
        )  # fmt: skip
    added = _causal(length) if mask is None else mask[0, 0].float()
    q, k, v, due, attended = (x.flatten(0, 1) for x in (query, key, value, grad_out, out))
    due32 = due.float()
    p = torch.baddbmm(added, q.float(), k.float().transpose(1, 2), alpha=scale)
    p.sub_(log_sums.flatten(0, 1)[:, :, None]).exp_()
    grad_v = p.to(q.dtype).transpose(1, 2) @ due
    together = due32.mul(attended).sum(-1, keepdim=True)
    grad_scores = (due32 @ v.float().transpose(1, 2)).sub_(together).mul_(p).mul_(scale)
    ds = grad_scores.to(q.dtype)
    shaped = (x.unflatten(0, query.shape[:2]) for x in (ds @ k, ds.transpose(1, 2) @ q, grad_v))
    grad_q, grad_k, grad_v = shaped
    return grad_q, grad_k, grad_v


def _causal(length: int) -> Tensor:
    return torch.full((length, length), -torch.inf).triu_(1)
