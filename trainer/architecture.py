"""Refuse a model whose log-probabilities our forward pass would get wrong.

Packing and sliced log-probabilities assume a plain decoder: full causal attention that takes a
mask, and a head that is one matrix. A sliding window shorter than the rows, a bias, scale or
soft-cap on the logits would bias every gradient without an error, so they are looked for by
comparing with the model's own forward pass before anything is trained.
"""

import torch

from trainer.data import PromptRow
from trainer.errors import InvalidData
from trainer.packing import Group
from trainer.policy import Policy
from trainer.proof import plain_logprobs

#: Mean |Δ log-prob| per token between the two ways: bfloat16 alone gives some hundredths.
LIMIT = 0.1

#: Tokens of the two made-up completions of the longest prompt.
TOKENS = 16


@torch.no_grad()
def check_architecture(policy: Policy, rows: list[PromptRow]) -> None:
    """Compare both ways on the longest prompt.

    Raises:
        InvalidData: they differ.
    """
    prompt = max((row.token_ids for row in rows), key=len)
    group = Group(prompt, [prompt[:TOKENS], prompt[-TOKENS:]])
    packed, _ = policy.logprobs([group], temperature=1.0)
    plain = plain_logprobs(
        policy.model, [{"prompt": prompt, "completion": c} for c in group.completions]
    )
    difference = (packed.cpu() - plain).abs().mean().item()
    if difference > LIMIT:
        raise InvalidData(
            f"Models of type {policy.model.config.model_type} cannot be trained here yet: packed "
            f"rows differ from the model's own forward pass by {difference:.2f} nats per token. "
            "Choose a base model with full causal attention and a plain output head."
        )
