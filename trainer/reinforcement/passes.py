"""Forward and backward passes over one micro-batch, as any process of a team runs them.

Each function takes the models by name and an item that holds all that the pass needs. Tensors of
items and results are on the CPU, as both may travel.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.objectives.critic import value_loss
from trainer.objectives.loss import TokenBatch, policy_loss
from trainer.objectives.objective import Objective
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reinforcement import critic
from trainer.reinforcement.figures import Figures

Models = Mapping[str, Policy]


@dataclass(frozen=True)
class Look:
    """Tokens to be looked at; no gradients."""

    groups: list[Group]
    temperature: float


@dataclass(frozen=True)
class PolicyPass:
    """The tokens of a micro-batch as :class:`TokenBatch` has them.

    ``old_logp_N`` is ``None`` before the first update: the policy's own are the old ones.
    """

    groups: list[Group]
    temperature: float
    objective: Objective
    old_logp_N: Tensor | None
    sampler_logp_N: Tensor
    advantage_N: Tensor
    weight_N: Tensor
    completion_N: Tensor
    reference_logp_N: Tensor | None


@dataclass(frozen=True)
class CriticPass:
    """The tokens of a micro-batch as :func:`value_loss` has them."""

    groups: list[Group]
    old_value_N: Tensor
    return_N: Tensor
    weight_N: Tensor
    clip: float


@torch.no_grad()
def policy_logp(models: Models, item: Look) -> Tensor:
    """Log-probabilities by the policy as it is, ``[N]``."""
    return models["policy"].logprobs(item.groups, temperature=item.temperature)[0].cpu()


@torch.no_grad()
def reference_logp(models: Models, item: Look) -> Tensor:
    """Log-probabilities by the reference, ``[N]``."""
    return models["reference"].logprobs(item.groups, temperature=item.temperature)[0].cpu()


@torch.no_grad()
def critic_values(models: Models, item: Look) -> Tensor:
    """The critic's values, ``[N]``."""
    return critic.values(models["critic"], item.groups).cpu()


def learn_policy(models: Models, item: PolicyPass) -> tuple[Figures, Tensor]:
    """Add the gradients of the policy's loss; returns figures and log-probabilities ``[N]``."""
    policy = models["policy"]
    logp_N, entropy_N = policy.logprobs(item.groups, temperature=item.temperature)
    old_logp_N, reference_logp_N = item.old_logp_N, item.reference_logp_N
    tokens = TokenBatch(
        logp_N=logp_N,
        old_logp_N=logp_N.detach() if old_logp_N is None else old_logp_N.to(policy.device),
        sampler_logp_N=item.sampler_logp_N.to(policy.device),
        advantage_N=item.advantage_N.to(policy.device),
        weight_N=item.weight_N.to(policy.device),
        completion_N=item.completion_N.to(policy.device),
        reference_logp_N=(None if reference_logp_N is None else reference_logp_N.to(policy.device)),
    )
    output = policy_loss(tokens, item.objective)
    output.loss.backward()  # type: ignore[no-untyped-call]
    return Figures.of_policy(output, entropy_N, item.objective.correction), logp_N.detach().cpu()


def learn_critic(models: Models, item: CriticPass) -> Figures:
    """Add the gradients of the critic's loss; returns figures."""
    network = models["critic"]
    output = value_loss(
        critic.values(network, item.groups),
        item.old_value_N.to(network.device),
        item.return_N.to(network.device),
        item.weight_N.to(network.device),
        clip=item.clip,
    )
    output.loss.backward()  # type: ignore[no-untyped-call]
    return Figures(value_loss=output.loss.item(), value_clipped=float(output.clipped_N.sum()))
