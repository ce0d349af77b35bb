"""The critic of an actor-critic method: what score each prefix of a completion will come to."""

import torch
from torch import Tensor

from trainer.packing import Group
from trainer.policy import Policy


def make_critic(policy: Policy) -> Policy:
    """A copy of the policy as it is now, with a head of one output beside the vocabulary's.

    It trains what the policy trains, and shares what the policy leaves as it is.
    """
    model = policy.reference().model
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in policy.trainable)
    size = model.get_output_embeddings().weight.shape[1]
    head = torch.nn.Linear(size, 1, device=policy.device, dtype=torch.float32)
    # Zeros: before it has learned, the critic expects nothing, and misleads nobody.
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    model.value_head = head
    return Policy(model, policy.tokenizer, lora_rank=policy.lora_rank)


def values(critic: Policy, groups: list[Group]) -> Tensor:
    """The expected score before each completion token, ``[N]``, float32, differentiable."""
    hidden_NH = critic.hidden(groups)
    value_N: Tensor = critic.model.value_head(hidden_NH.float()).squeeze(-1)
    return value_N
