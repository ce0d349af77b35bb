"""Attention over packed rows: a completion sees its prompt and its own past, and nothing else.

A packed row holds prompts and completions of several groups one after the other, without padding.
Every other layer of a decoder works on single tokens and needs no change; only attention must know
which tokens belong together. On a CPU each group is attended to by itself: its prompt causally, its
completions together over the prompt's keys and their own. On a GPU one flex-attention kernel does
it, with a mask made of blocks.

``register`` makes this the attention of a model in transformers' own way; without a ``layout`` the
model attends as usual.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from trainer.attention_gradient import attention_gradient

#: The name under which models ask for it.
NAME = "shared_prompt"

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

#: What other attentions take into account and this one does not, by transformers' names.
_UNSUPPORTED = ("softcap", "s_aux")


@dataclass(frozen=True)
class Span:
    """Where one group lies in the row, and how its completions fill a grid ``C × T``.

    ``slots`` says for each of the group's completion tokens which place of the grid it takes.
    """

    start: int
    prompt: int
    completions: int
    longest: int
    slots: Tensor

    @property
    def middle(self) -> int:
        """Where the completions begin."""
        return self.start + self.prompt

    @property
    def end(self) -> int:
        """Where the next group begins."""
        return self.middle + len(self.slots)


@dataclass(frozen=True)
class Layout:
    """The groups of a packed row; ``part_S`` is 0 in prompts and numbers the completions from 1."""

    spans: list[Span]
    group_S: Tensor
    part_S: Tensor
    _masks: dict[Any, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, prompts: list[int], completions: list[list[int]], device: torch.device) -> "Layout":
        """Lay out groups of these prompt and completion lengths one after the other."""
        spans, groups, parts, start = [], [], [], 0
        for number, (prompt, lengths) in enumerate(zip(prompts, completions, strict=True)):
            longest = max(lengths)
            slots = [c * longest + t for c, n in enumerate(lengths) for t in range(n)]
            spans.append(
                Span(start, prompt, len(lengths), longest, torch.tensor(slots, device=device))
            )
            start += prompt + len(slots)
            groups += [number] * (prompt + len(slots))
            parts += [0] * prompt + [c for c, n in enumerate(lengths, 1) for _ in range(n)]
        return cls(spans, torch.tensor(groups, device=device), torch.tensor(parts, device=device))

    def completion_mask(self, span: Span, repeats: int, like: Tensor) -> Tensor:
        """What is added to the scores ``[1, 1, repeats·T, P+T]`` of a group's completions."""
        key = (span.prompt, span.longest, repeats, like.dtype)
        if key not in self._masks:
            t = span.longest
            own = torch.full((t, t), -torch.inf, dtype=like.dtype, device=like.device).triu(1)
            seen = torch.zeros(t, span.prompt, dtype=like.dtype, device=like.device)
            self._masks[key] = torch.cat([seen, own], 1).repeat(repeats, 1)[None, None]
        return self._masks[key]

    @functools.cached_property
    def block_mask(self) -> Any:
        """The same for flex attention."""
        from torch.nn.attention.flex_attention import create_block_mask

        group, part = self.group_S, self.part_S

        def may_see(_batch: Any, _head: Any, query: Tensor, key: Tensor) -> Tensor:
            together = group[query] == group[key]
            family = (part[key] == 0) | (part[query] == part[key])
            return together & family & (key <= query)

        # Compiled, it never makes the mask over all pairs of tokens.
        return create_block_mask(
            may_see,
            B=None,
            H=None,
            Q_LEN=len(part),
            KV_LEN=len(part),
            device=part.device,
            _compile=part.is_cuda,
        )


def register() -> str:
    """Teach transformers this attention; returns its name."""
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def packed_mask(device: torch.device) -> Tensor:
    """Stands for a mask, so that transformers makes none: the layout says all that it would."""
    return torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=device)


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    layout: Layout | None = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend as transformers asks: heads first in, ``[B, S, H, D]`` out."""
    if layout is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
    for name in _UNSUPPORTED:
        if options.get(name) is not None:
            raise NotImplementedError(f"packed rows cannot be attended to with {name}")
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if query.is_cuda:
        attended = _flex()(
            query, key, value, block_mask=layout.block_mask, scale=scale, enable_gqa=True
        )
        return attended.transpose(1, 2), None
    return _GroupAttention.apply(query[0], key[0], value[0], layout, scale)[None], None


@functools.cache
def _flex() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)


class _GroupAttention(torch.autograd.Function):
    """Group by group: ``query [H, S, D]``, ``key`` and ``value [K, S, D]`` give ``[S, H, D]``.

    The ``H / K`` query heads that share a key head are laid one after the other along the tokens,
    so keys are not repeated. What a prompt's keys are due from all completions is added up in
    float32.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float
    ) -> Tensor:
        rows = [x.transpose(0, 1) for x in (query, key, value)]
        out = torch.empty(rows[0].shape, dtype=query.dtype)
        sums = []
        for span in layout.spans:
            q, k, v = _prompt(rows, span)
            attended, prompt_sum = _forward(q, k, v, 0.0, True, scale=scale)
            out[span.start : span.middle] = attended[0].transpose(0, 1)
            q, k, v = _completions(rows, span)
            mask = layout.completion_mask(span, len(query) // len(key), q)
            attended, own_sum = _forward(q, k, v, 0.0, False, attn_mask=mask, scale=scale)
            out[span.middle : span.end] = _unfold(attended, span, len(query))[span.slots]
            sums += [prompt_sum, own_sum]
        ctx.save_for_backward(query, key, value, out, *sums)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        query, key, value, out, *sums = ctx.saved_tensors
        rows = [x.transpose(0, 1) for x in (query, key, value)]
        grad_out: Tensor = grads[0]
        grad_q, grad_k, grad_v = (torch.empty(x.shape, dtype=x.dtype) for x in rows)
        kv = len(key)
        for index, span in enumerate(ctx.layout.spans):
            q, k, v = _completions(rows, span)
            mask = ctx.layout.completion_mask(span, len(query) // kv, q)
            part = slice(span.middle, span.end)
            due = _fold(_grid(grad_out[part], span), kv)
            attended = _fold(_grid(out[part], span), kv)
            gq, gk, gv = attention_gradient(
                due, (q, k, v), attended, sums[2 * index + 1], mask=mask, scale=ctx.scale
            )
            grad_q[part] = _unfold(gq, span, len(query))[span.slots]
            from_completions = []
            for grad, g in ((grad_k, gk), (grad_v, gv)):
                own = g[:, :, span.prompt :].transpose(1, 2).reshape(-1, kv, g.shape[-1])
                grad[part] = own[span.slots]
                from_completions.append(g[:, :, : span.prompt].sum(0, dtype=torch.float32))
            q, k, v = _prompt(rows, span)
            part = slice(span.start, span.middle)
            due, attended = (x[part].transpose(0, 1)[None] for x in (grad_out, out))
            gq, gk, gv = attention_gradient(
                due, (q, k, v), attended, sums[2 * index], mask=None, scale=ctx.scale
            )
            grad_q[part] = gq[0].transpose(0, 1)
            for grad, g, more in zip((grad_k, grad_v), (gk, gv), from_completions, strict=True):
                shared = g[0].unflatten(0, (kv, -1)).sum(1, dtype=torch.float32)
                grad[part] = shared.add_(more).transpose(0, 1).to(grad.dtype)
        return (*(g.transpose(0, 1) for g in (grad_q, grad_k, grad_v)), None, None)


def _prompt(rows: list[Tensor], span: Span) -> tuple[Tensor, Tensor, Tensor]:
    """A group's prompt as a batch of one, ``[1, H, P, D]``; keys repeated for their heads."""
    q, k, v = (x[span.start : span.middle].transpose(0, 1)[None] for x in rows)
    repeats = q.shape[1] // k.shape[1]
    return q, k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)


def _completions(rows: list[Tensor], span: Span) -> tuple[Tensor, Tensor, Tensor]:
    """A group's completions: queries ``[C, K, H/K·T, D]`` over keys ``[C, K, P+T, D]``."""
    q, *keys = rows
    queries = _fold(_grid(q[span.middle : span.end], span), keys[0].shape[1])
    seen = []
    for x in keys:
        prompt = x[span.start : span.middle].transpose(0, 1).expand(span.completions, -1, -1, -1)
        own = _grid(x[span.middle : span.end], span).transpose(1, 2)
        seen.append(torch.cat([prompt, own], 2))
    return queries, seen[0], seen[1]


def _grid(rows: Tensor, span: Span) -> Tensor:
    """Completion tokens in their places of the grid, ``[C, T, heads, D]``; free places are zero.

    Nothing sees a free place: it comes after its completion's last token.
    """
    size = span.completions * span.longest
    if len(rows) == size:
        return rows.unflatten(0, (span.completions, span.longest))
    grid = rows.new_zeros(size, *rows.shape[1:])
    grid[span.slots] = rows
    return grid.unflatten(0, (span.completions, span.longest))


def _fold(grid: Tensor, kv: int) -> Tensor:
    """``[C, T, H, D]`` → ``[C, K, H/K·T, D]``."""
    return grid.unflatten(2, (kv, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)


def _unfold(folded: Tensor, span: Span, heads: int) -> Tensor:
    """``[C, K, H/K·T, D]`` → ``[C·T, H, D]``."""
    apart = folded.unflatten(2, (-1, span.longest)).permute(0, 3, 1, 2, 4)
    return apart.reshape(-1, heads, folded.shape[-1])
