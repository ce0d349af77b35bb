"""The supervised loss: mean negative log-likelihood of the tokens that are learnt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.demonstrations import Demonstration
from trainer.logprob import chunked_logprob
from trainer.means import Means
from trainer.packing import micro_batches
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.supervised.accuracy import most_likely


@dataclass(frozen=True)
class Share:
    """Demonstrations of one forward pass, and the learnt tokens of the whole update.

    The loss of every token is divided by the latter, which is known before the update is shared
    out: neither micro-batches nor processes change it.
    """

    demonstrations: list[Demonstration]
    update_tokens: int


def shares(demonstrations: Sequence[Demonstration], token_budget: int) -> list[Share]:
    """Cut the demonstrations of an update into forward passes."""
    tokens = sum(d.tokens for d in demonstrations)
    groups = [d.group for d in demonstrations]
    return [
        Share([demonstrations[i] for i in indices], tokens)
        for indices in micro_batches(groups, token_budget)
    ]


def accumulate(
    team: Team, policy: Policy, demonstrations: Sequence[Demonstration], token_budget: int
) -> Means:
    """Add up the gradients of an update: the mean loss over all its learnt tokens."""
    parts = team.accumulate(learn, {"policy": policy}, shares(demonstrations, token_budget))
    return Means.sum(figures for part in parts for figures in part)


def learn(models: Mapping[str, Any], share: Share) -> list[Means]:
    """Add the gradients of a share; returns the figures of its demonstrations."""
    logp_N, hit_N = learnt_tokens(models["policy"], share.demonstrations)
    loss = -logp_N.sum() / share.update_tokens
    loss.backward()  # type: ignore[no-untyped-call]
    return _figures(share.demonstrations, logp_N.detach(), hit_N)


@torch.no_grad()
def measure(models: Mapping[str, Any], share: Share) -> list[Means]:
    """The figures of the demonstrations of a share."""
    return _figures(share.demonstrations, *learnt_tokens(models["policy"], share.demonstrations))


def learnt_tokens(policy: Policy, demonstrations: Sequence[Demonstration]) -> tuple[Tensor, Tensor]:
    """Log-probability of every learnt token, and whether it was the most likely one.

    Returns:
        ``logp [N]`` and ``hit [N]``, in the order of the demonstrations; other tokens have no
        logits computed.
    """
    device = policy.device
    learnt_T = torch.tensor([learnt for d in demonstrations for learnt in d.learnt], device=device)
    targets_N = torch.tensor([t for d in demonstrations for t in d.learnt_ids], device=device)
    hidden_NH = policy.hidden([d.group for d in demonstrations])[learnt_T]
    weight = policy.model.get_output_embeddings().weight
    logp_N, _ = chunked_logprob(hidden_NH, weight, targets_N, 1.0)
    return logp_N, most_likely(hidden_NH, weight, targets_N, logp_N)


def _figures(demonstrations: Sequence[Demonstration], logp_N: Tensor, hit_N: Tensor) -> list[Means]:
    lengths = [d.tokens for d in demonstrations]
    rows = zip(torch.split(logp_N, lengths), torch.split(hit_N, lengths), strict=True)
    # One transfer from the device.
    sums = torch.stack([torch.stack([-logp.sum(), hit.sum()]) for logp, hit in rows]).tolist()
    return [
        Means(
            {"loss": loss, "mean_token_accuracy": hits},
            {"loss": length, "mean_token_accuracy": length},
        )
        for (loss, hits), length in zip(sums, lengths, strict=True)
    ]
