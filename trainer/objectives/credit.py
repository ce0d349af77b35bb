"""Credit: from a step's scores to an advantage for every token, whatever the objective is."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.objectives.advantages import (
    discounted_sums,
    gae,
    group_advantages,
    leave_one_out_advantages,
    whiten,
)
from trainer.objectives.objective import Objective


@dataclass(frozen=True)
class Judged:
    """One completion as the comparison sees it.

    ``score`` is the one after shaping, ``None`` for a completion that takes no part. ``kl_N`` are
    the estimates per token of :func:`trainer.objectives.kl.kl_estimate`, needed where the penalty
    stands in the reward, ``value_N`` the critic's, needed where there is one; both detached.
    """

    score: float | None
    length: int
    kl_N: Tensor | None = None
    value_N: Tensor | None = None


@dataclass(frozen=True)
class Credit:
    """Advantages ``[length]`` of one completion, and where there is a critic, what it should say.

    Float64 on the CPU. A completion that takes no part has zeros, and no returns.
    """

    advantage_N: Tensor
    return_N: Tensor | None = None


def assign_credit(groups: list[list[Judged]], objective: Objective) -> list[list[Credit]]:
    """Compare the completions of a whole step.

    Args:
        groups: the completions of each prompt.
    """
    if objective.advantage in ("whitened_returns", "gae"):
        return _per_token(groups, objective)
    return [_per_completion(group, objective) for group in groups]


def _per_completion(group: list[Judged], objective: Objective) -> list[Credit]:
    """One advantage for all tokens; the penalty of the whole completion is taken from its score."""
    scores = [
        None if j.score is None else j.score - _penalty_N(j, objective).sum().item() for j in group
    ]
    if objective.advantage == "leave_one_out":
        values = leave_one_out_advantages(scores)
    else:
        scale = objective.advantage == "group_scaled"
        values = group_advantages(scores, scale_by_std=scale)
    return [
        Credit(torch.full((j.length,), value, dtype=torch.float64))
        for j, value in zip(group, values, strict=True)
    ]


def _per_token(groups: list[list[Judged]], objective: Objective) -> list[list[Credit]]:
    """Advantages of tokens, whitened over the step; groups make no difference here."""
    part = [j for group in groups for j in group if j.score is not None and j.length]
    rewards = [_reward_N(j, objective) for j in part]
    values: list[Tensor | None] = [None] * len(part)
    if objective.has_critic:
        values = [_needed(j.value_N, "values of the critic").double().cpu() for j in part]
    raw = [_raw_N(r, v, objective) for r, v in zip(rewards, values, strict=True)]
    learned = iter(
        Credit(white_N, None if value_N is None else raw_N + value_N)
        for white_N, raw_N, value_N in zip(whiten(raw), raw, values, strict=True)
    )
    return [
        [
            next(learned)
            if j.score is not None and j.length
            else Credit(torch.zeros(j.length, dtype=torch.float64))
            for j in group
        ]
        for group in groups
    ]


def _raw_N(reward_N: Tensor, value_N: Tensor | None, objective: Objective) -> Tensor:
    if value_N is None:
        return discounted_sums(reward_N, objective.discount)
    return gae(reward_N, value_N, discount=objective.discount, gae_lambda=objective.gae_lambda)


def _reward_N(judged: Judged, objective: Objective) -> Tensor:
    """The penalty at each token, and the score at the last."""
    assert judged.score is not None
    reward_N = -_penalty_N(judged, objective)
    reward_N[-1] += judged.score
    return reward_N


def _penalty_N(judged: Judged, objective: Objective) -> Tensor:
    if not objective.kl_in_reward:
        return torch.zeros(judged.length, dtype=torch.float64)
    kl_N = _needed(judged.kl_N, "the distances to the reference")
    return objective.kl.coefficient * kl_N.double().cpu()


def _needed(tensor: Tensor | None, what: str) -> Tensor:
    if tensor is None:
        raise ValueError(f"This objective needs {what} for every completion with a score.")
    return tensor
