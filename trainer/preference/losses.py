"""Losses over preferences as pure functions of log-probabilities; B counts pairs.

DPO (arXiv:2305.18290), ORPO (2403.07691), KTO (2402.01306). A *reward* is what the loss takes the
policy to have learnt about an answer: ``β·(log π − log π_ref)``, or ``β·log π`` per token where
there is no reference.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


@dataclass(frozen=True)
class PairLoss:
    """The loss of each pair ``[B]`` to differentiate, and detached rewards of both answers."""

    loss_B: Tensor
    preferred_B: Tensor
    non_preferred_B: Tensor


def dpo(better_B: Tensor, worse_B: Tensor, *, beta: float) -> PairLoss:
    """``−log σ(β·(better − worse))``.

    Args:
        better_B: log π − log π_ref of the preferred answers, summed over tokens; likewise
            ``worse_B`` of the others.
    """
    loss_B = -logsigmoid(beta * (better_B - worse_B))
    return _with_rewards(loss_B, beta * better_B, beta * worse_B)


def orpo(better_B: Tensor, worse_B: Tensor, *, beta: float) -> PairLoss:
    """``−better − β·log σ(log odds(better) − log odds(worse))``, odds(P) = P / (1 − P).

    The first term is the supervised loss of the preferred answer; no reference is needed.

    Args:
        better_B: mean log π per token of the preferred answers; likewise ``worse_B``.
    """
    odds_B = _log_odds(better_B) - _log_odds(worse_B)
    loss_B = -better_B - beta * logsigmoid(odds_B)
    return _with_rewards(loss_B, beta * better_B, beta * worse_B)


def kto(better_B: Tensor, worse_B: Tensor, *, kl: float, beta: float) -> PairLoss:
    """Mean of ``1 − σ(β·(better − kl))`` and ``1 − σ(β·(kl − worse))``.

    Args:
        better_B: log π − log π_ref of the preferred answers, summed over tokens; likewise
            ``worse_B`` of the others.
        kl: the reference point, see :func:`kto_kl`.
    """
    gain_B = torch.sigmoid(beta * (better_B - kl))
    avoided_B = torch.sigmoid(beta * (kl - worse_B))
    loss_B = 1 - (gain_B + avoided_B) / 2
    return _with_rewards(loss_B, beta * better_B, beta * worse_B)


def kto_kl(mismatched: list[float]) -> float:
    """The distance to the reference, at least 0, that answers are compared with.

    Args:
        mismatched: log π − log π_ref of answers to other prompts than their own.
    """
    return max(0.0, sum(mismatched) / len(mismatched))


def _log_odds(logp_B: Tensor) -> Tensor:
    # log(1 − P) by expm1, which is exact where P is near 1; at 1 itself it is kept finite.
    rest_B = -torch.expm1(logp_B)
    return logp_B - torch.log(rest_B.clamp_min(torch.finfo(logp_B.dtype).tiny))


def _with_rewards(loss_B: Tensor, preferred_B: Tensor, non_preferred_B: Tensor) -> PairLoss:
    return PairLoss(loss_B, preferred_B.detach(), non_preferred_B.detach())
