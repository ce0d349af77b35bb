"""Group by group, by blocks, and by a plain mask: the same attention."""

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from trainer import attention, attention_gradient
from trainer.attention import Layout

PROMPTS = [5, 2, 40]
COMPLETIONS = [[2, 1, 4], [3, 3], [1, 30, 17]]
HEADS, KEY_HEADS, SIZE, SCALE = 4, 2, 16, 0.3


def layout() -> Layout:
    return Layout.of(PROMPTS, COMPLETIONS, torch.device("cpu"))


def plain_mask() -> Tensor:
    """Who sees whom, written out."""
    parts = [
        (group, part)
        for group, (prompt, lengths) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True))
        for part, length in enumerate([prompt, *lengths])
        for _ in range(length)
    ]
    seen = [
        [k <= q and gk == gq and pk in (0, pq) for k, (gk, pk) in enumerate(parts)]
        for q, (gq, pq) in enumerate(parts)
    ]
    return torch.tensor(seen)


def inputs(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(0)
    length = sum(PROMPTS) + sum(map(sum, COMPLETIONS))
    return [
        torch.randn(1, heads, length, SIZE).to(dtype).requires_grad_()
        for heads in (HEADS, KEY_HEADS, KEY_HEADS)
    ]


def packed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    module = torch.nn.Module()
    out, _ = attention._attend(module, q, k, v, None, layout=layout(), scaling=SCALE)
    return out


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = plain_mask()
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=SCALE, enable_gqa=True)
    return out.transpose(1, 2)


def with_gradients(way: object, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    given = inputs(dtype)
    out = way(*given)  # type: ignore[operator]
    torch.manual_seed(1)
    (out.float() * torch.randn(out.shape)).sum().backward()
    return [out, *(x.grad for x in given if x.grad is not None)]


@pytest.mark.parametrize("most", [0, attention_gradient.MOST_SCORES])
def test_equals_one_mask_over_all_in_value_and_gradient(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(attention_gradient, "MOST_SCORES", most)
    for got, want in zip(with_gradients(packed), with_gradients(plain), strict=True):
        torch.testing.assert_close(got, want, atol=2e-6, rtol=1e-5)


def test_bfloat16_is_as_near_as_its_rounding() -> None:
    exact = with_gradients(plain)
    for got, want in zip(with_gradients(packed, torch.bfloat16), exact, strict=True):
        assert (got - want).abs().max() < 0.03 * want.abs().max()


def test_the_blocks_for_flex_attention_say_the_same() -> None:
    q, k, v = (x.detach() for x in inputs())  # the kernel has no gradient on a CPU
    blocks = layout().block_mask
    out = flex_attention(q, k, v, block_mask=blocks, scale=SCALE, enable_gqa=True)
    torch.testing.assert_close(out.transpose(1, 2), packed(q, k, v), atol=2e-6, rtol=1e-5)


def test_what_would_be_left_out_is_refused() -> None:
    module = torch.nn.Module()
    with pytest.raises(NotImplementedError, match="softcap"):
        attention._attend(module, *inputs(), None, layout=layout(), softcap=30.0)
