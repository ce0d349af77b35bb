"""Forward and backward passes over pairs, and what they measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.logprob import chunked_logprob
from trainer.means import Means
from trainer.packing import Group
from trainer.policy import Policy
from trainer.preference.losses import PairLoss, dpo, kto, orpo
from trainer.preference.pairs import Pair
from trainer.supervised.accuracy import most_likely


@dataclass(frozen=True)
class Share:
    """Pairs of one forward pass, and what the loss needs to know of the whole update."""

    pairs: list[Pair]
    loss: str
    beta: float
    #: The reference point of "kto".
    kl: float
    #: Pairs of the update, by which the loss is divided.
    update_pairs: int


@dataclass(frozen=True)
class _Passed:
    """Sums of log-probabilities of both answers ``[B, 2]``, and hits on the preferred ones."""

    logp_B2: Tensor
    hits_B: Tensor


def learn(models: Mapping[str, Any], share: Share) -> list[Means]:
    """Add the gradients of a share; returns the figures of its pairs."""
    passed = _pass(models["policy"], share.pairs)
    output = _loss(share, passed)
    (output.loss_B.sum() / share.update_pairs).backward()  # type: ignore[no-untyped-call]
    return _figures(share, passed, output)


@torch.no_grad()
def measure(models: Mapping[str, Any], share: Share) -> list[Means]:
    """The figures of the pairs of a share."""
    passed = _pass(models["policy"], share.pairs)
    return _figures(share, passed, _loss(share, passed))


@torch.no_grad()
def sums(models: Mapping[str, Any], groups: list[Group]) -> list[list[float]]:
    """The summed log-probability of every completion of each group."""
    policy: Policy = models["policy"]
    logp_N, _ = policy.logprobs(groups, temperature=1.0)
    values = iter(_per_completion(logp_N, groups).tolist())
    return [[next(values) for _ in group.completions] for group in groups]


def _pass(policy: Policy, pairs: Sequence[Pair]) -> _Passed:
    groups = [pair.group for pair in pairs]
    ids = [token for group in groups for answer in group.completions for token in answer]
    targets_N = torch.tensor(ids, device=policy.device)
    hidden_NH = policy.hidden(groups)
    weight = policy.model.get_output_embeddings().weight
    logp_N, _ = chunked_logprob(hidden_NH, weight, targets_N, 1.0)
    flags = [[True] * len(p.preferred_ids) + [False] * len(p.non_preferred_ids) for p in pairs]
    preferred_N = torch.tensor([flag for row in flags for flag in row], device=policy.device)
    hit_N = most_likely(hidden_NH[preferred_N], weight, targets_N[preferred_N], logp_N[preferred_N])
    lengths = [len(pair.preferred_ids) for pair in pairs]
    hits_B = torch.stack([part.sum() for part in torch.split(hit_N, lengths)])
    return _Passed(_per_completion(logp_N, groups).view(-1, 2), hits_B)


def _per_completion(logp_N: Tensor, groups: Sequence[Group]) -> Tensor:
    """Sums over the tokens of each completion."""
    lengths = [len(answer) for group in groups for answer in group.completions]
    return torch.stack([part.sum() for part in torch.split(logp_N, lengths)])


def _loss(share: Share, passed: _Passed) -> PairLoss:
    if share.loss == "orpo":
        lengths = [[len(p.preferred_ids), len(p.non_preferred_ids)] for p in share.pairs]
        mean_B2 = passed.logp_B2 / torch.tensor(lengths, device=passed.logp_B2.device)
        return orpo(mean_B2[:, 0], mean_B2[:, 1], beta=share.beta)
    known = [pair.reference[:2] for pair in share.pairs if pair.reference is not None]
    difference_B2 = passed.logp_B2 - torch.tensor(known, device=passed.logp_B2.device)
    better_B, worse_B = difference_B2.unbind(1)
    if share.loss == "kto":
        return kto(better_B, worse_B, kl=share.kl, beta=share.beta)
    return dpo(better_B, worse_B, beta=share.beta)


def _figures(share: Share, passed: _Passed, output: PairLoss) -> list[Means]:
    # One transfer from the device.
    columns = [output.loss_B.detach(), output.preferred_B, output.non_preferred_B, passed.hits_B]
    rows = torch.stack(columns, dim=1).tolist()
    return [
        Means(
            {
                "loss": loss,
                "mean_token_accuracy": hits,
                "mean_preferred_reward": preferred,
                "mean_non_preferred_reward": other,
                "mean_reward_margin": preferred - other,
                "reward_accuracy": float(preferred > other),
            },
            {
                "loss": 1,
                "mean_token_accuracy": len(pair.preferred_ids),
                "mean_preferred_reward": 1,
                "mean_non_preferred_reward": 1,
                "mean_reward_margin": 1,
                "reward_accuracy": 1,
            },
        )
        for (loss, preferred, other, hits), pair in zip(rows, share.pairs, strict=True)
    ]
