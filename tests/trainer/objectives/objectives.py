"""Objectives and batches of tokens for tests."""

from typing import Any

import torch
from torch import Tensor

from tests.trainer.hyperparameters import HYPERPARAMETERS
from trainer.objectives.loss import TokenBatch
from trainer.objectives.objective import Objective
from trainer.spec import Hyperparameters

ALGORITHMS = ("grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "reinforce++", "ppo")


def objective(algorithm: str, **values: Any) -> Objective:
    """An algorithm's objective, without a correction unless one is given."""
    plain = {"sampler_correction": "none", "algorithm": algorithm}
    return Objective.of(Hyperparameters(**{**HYPERPARAMETERS, **plain, **values}))


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def batch(
    logp_N: Tensor,
    advantage_N: Tensor,
    *,
    old_logp_N: Tensor | None = None,
    sampler_logp_N: Tensor | None = None,
    reference_logp_N: Tensor | None = None,
    weight_N: Tensor | None = None,
    completion_N: Tensor | None = None,
) -> TokenBatch:
    """A batch that is on policy, weighs every token 1 and holds one completion, unless told."""
    old_logp_N = logp_N.detach() if old_logp_N is None else old_logp_N
    one = torch.zeros(len(logp_N), dtype=torch.int64)
    return TokenBatch(
        logp_N=logp_N,
        old_logp_N=old_logp_N,
        sampler_logp_N=old_logp_N if sampler_logp_N is None else sampler_logp_N,
        advantage_N=advantage_N,
        weight_N=torch.ones_like(old_logp_N) if weight_N is None else weight_N,
        completion_N=one if completion_N is None else completion_N,
        reference_logp_N=reference_logp_N,
    )
