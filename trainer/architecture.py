"""Refuse a model whose log-probabilities our forward pass would get wrong.

Packed rows and sliced log-probabilities assume a plain decoder: tokens meet in full causal
attention and nowhere else, and the head is one matrix, perhaps scaled. State that is carried from
token to token, a window shorter than the rows, a bias or a soft-cap would bias every gradient
without an error. So both ways are compared before anything is trained, in float32, where they agree
to some millionths or differ in kind.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trainer.errors import UnusableModel, in_one_line
from trainer.packing import Group
from trainer.policy import Policy
from trainer.proof import plain_logprobs
from trainer.quantization import computing_in
from trainer.watch.memory import is_out_of_memory

#: Mean |Δ log-prob| per token between the two ways, in float32.
LIMIT = 1e-3

#: Most tokens of the prompt, and those of made-up completions.
PROMPT_TOKENS, TOKENS = 256, 16

#: Where configurations say how far back a layer sees, and how layers of that kind are called.
_WINDOWS = {
    "sliding_window": "sliding_attention",
    "attention_chunk_size": "chunked_attention",
    "window_size": "local",
}


def check_architecture(policy: Policy, ids: list[int], *, longest: int) -> None:
    """Compare our forward pass with the model's own.

    Args:
        ids: a prompt, the longest preferably.
        longest: tokens of the longest row that will be trained on, or measured.

    Raises:
        UnusableModel: they differ, or would on longer rows.
    """
    config = policy.model.config
    check_window(policy, longest)
    for bound in _even_positions(config):
        if bound < longest:
            raise _unusable(
                config,
                f"beyond {bound} tokens its positions depend on the longest row beside them, and "
                f"rows have up to {longest} tokens",
            )
    first = Group(ids[:PROMPT_TOKENS], [ids[:TOKENS], ids[-TOKENS:]])
    try:
        difference = _difference(policy, [first, Group(ids[-TOKENS:], [ids[:TOKENS]])])
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # What a model does with arguments it does not know is up to its code.
        if is_out_of_memory(error):
            raise
        reason = f"its layers do not take packed rows ({in_one_line(error)})"
        raise _unusable(config, reason) from error
    if not difference <= LIMIT:
        raise _unusable(
            config,
            f"packed rows differ from its own forward pass by {difference:.2g} nats per token",
        )


def check_window(policy: Policy, longest: int) -> None:
    """Refuse a model whose layers see less than the longest row, in tokens.

    Raises:
        UnusableModel: our forward pass would let them see all of it.
    """
    config = policy.model.config
    for window in _windows(config):
        if window < longest:
            raise _unusable(
                config, f"it sees {window} tokens back, and rows have up to {longest} tokens"
            )


def _unusable(config: Any, reason: str) -> UnusableModel:
    return UnusableModel(
        f"Models of type {config.model_type} cannot be trained here: {reason}. Choose a base model "
        "with full causal attention and a plain output head."
    )


@torch.no_grad()
def _difference(policy: Policy, groups: list[Group]) -> float:
    rows = [{"prompt": g.prompt, "completion": c} for g in groups for c in g.completions]
    with _in_float32(policy.model):
        packed, _ = policy.logprobs(groups, temperature=1.0)
        plain = plain_logprobs(policy.model, rows)
    return (packed.cpu() - plain).abs().mean().item()


def _windows(config: Any) -> Iterator[int]:
    """How far back the layers see that do not see everything."""
    kinds = getattr(config, "layer_types", None)
    for name, kind in _WINDOWS.items():
        window = getattr(config, name, None)
        if window is not None and (kinds is None or kind in kinds):
            yield window


def _even_positions(config: Any) -> Iterator[int]:
    """Up to how many tokens positions mean the same in any row, where that has an end."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kinds = [parameters, *(own for own in parameters.values() if isinstance(own, dict))]
    for kind in kinds:
        if kind.get("rope_type") == "longrope":
            yield kind["original_max_position_embeddings"]
        elif kind.get("rope_type") == "dynamic":
            yield config.max_position_embeddings


@contextmanager
def _in_float32(model: Any) -> Iterator[None]:
    """Compute in float32 for a while; the weights come back to the bit."""
    tensors = itertools.chain(model.parameters(), model.buffers())
    narrow = [(t, t.dtype) for t in tensors if t.dtype in (torch.bfloat16, torch.float16)]
    for tensor, _ in narrow:
        tensor.data = tensor.data.float()
    try:
        with computing_in(model, torch.float32):
            yield
    finally:
        for tensor, dtype in narrow:
            tensor.data = tensor.data.to(dtype)
