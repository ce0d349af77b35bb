"""Work that the processes of a team share in tests; each of them imports it from here."""

import os
from collections.abc import Mapping

import torch

from trainer.packing import Group
from trainer.policy import Policy


def likelihood(models: Mapping[str, Policy], group: Group) -> tuple[float, list[float]]:
    """Gradients of a weighted likelihood; the loss and the log-probabilities."""
    logp_N, _ = models["policy"].logprobs([group], temperature=1.0)
    loss = -(logp_N * torch.arange(1, len(logp_N) + 1)).sum() / 64
    loss.backward()
    return loss.item(), logp_N.tolist()


def against_reference(models: Mapping[str, Policy], group: Group) -> float:
    """How far the policy is from the reference."""
    with torch.no_grad():
        ours, _ = models["policy"].logprobs([group], temperature=1.0)
        theirs, _ = models["reference"].logprobs([group], temperature=1.0)
    return (ours - theirs).abs().max().item()


def weights_of(models: Mapping[str, Policy], _item: int) -> tuple[int, dict[str, torch.Tensor]]:
    """Which process this is, and the weights that it computes with."""
    return os.getpid(), {n: p.detach().clone() for n, p in models["policy"].trainable.items()}


def refuse(_models: Mapping[str, Policy], item: int) -> int:
    """Fail on odd items, as a process that runs out of memory."""
    if item % 2:
        raise MemoryError(f"item {item}")
    return item


def vanish(_models: Mapping[str, Policy], leader: int) -> int:
    """End the process at once, unless it is the leader."""
    if os.getpid() != leader:
        os._exit(7)
    return leader
