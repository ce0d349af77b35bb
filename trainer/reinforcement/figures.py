"""What the updates of one step measured."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from trainer.objectives.critic import explained_variance
from trainer.objectives.loss import LossOutput
from trainer.objectives.objective import Correction, Objective
from trainer.reinforcement.examples import Example


@dataclass
class Figures:
    """Sums over the tokens of every pass, of one update or several; ``ratio_max`` is a maximum."""

    loss: float = 0.0
    tokens: int = 0
    entropy: float = 0.0
    clipped_low: float = 0.0
    clipped_high: float = 0.0
    correction: float = 0.0
    capped: float = 0.0
    kept: float = 0.0
    kl: float = 0.0
    value_loss: float = 0.0
    value_clipped: float = 0.0
    ratio_max: float = 0.0

    @classmethod
    def of_policy(cls, output: LossOutput, entropy_N: Tensor, correction: Correction) -> "Figures":
        """Count one micro-batch of the policy; one transfer from the device."""
        cut_at = correction.high if correction.kind.endswith("truncate") else math.inf
        nothing_N = torch.zeros_like(entropy_N)
        sums = {
            "loss": output.loss.detach().float(),
            "entropy": entropy_N.sum(),
            "clipped_low": output.clipped_low_N.sum(),
            "clipped_high": output.clipped_high_N.sum(),
            "correction": output.correction_N.sum(),
            "capped": (output.correction_N >= cut_at).sum(),
            "kept": output.kept_N.sum(),
            "kl": (nothing_N if output.kl_N is None else output.kl_N).sum(),
            "ratio_max": output.ratio_N.max(),
        }
        values = torch.stack(list(sums.values())).tolist()
        return cls(tokens=len(entropy_N), **dict(zip(sums, values, strict=True)))

    @classmethod
    def sum(cls, parts: Iterable["Figures"]) -> "Figures":
        """Count what all of them counted."""
        total = cls()
        for part in parts:
            total.add(part)
        return total

    def add(self, other: "Figures") -> None:
        """Count what another object counted."""
        largest = max(self.ratio_max, other.ratio_max)
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        self.ratio_max = largest


@dataclass
class Measured:
    """What the updates of a step were, besides their sums; norms are the largest of them."""

    figures: Figures = field(default_factory=Figures)
    updates: int = 0
    learning_rate: float = 0.0
    grad_norm: float = 0.0
    critic_grad_norm: float = 0.0
    mismatch_mean: float = 0.0
    mismatch_max: float = 0.0
    has_reference: bool = False
    staleness: int = 0


def update_metrics(
    measured: Measured, examples: Sequence[Example], objective: Objective
) -> dict[str, Any]:
    """The updates of a step as metrics: means per token, shares of tokens.

    ``None`` stands where nothing was measured: when no completion had anything to teach, nothing
    went through the model.
    """
    sums = measured.figures

    def mean(total: float) -> float | None:
        return total / sums.tokens if sums.tokens else None

    return {
        "loss": sums.loss / max(1, measured.updates),
        "grad_norm": measured.grad_norm,
        "learning_rate": measured.learning_rate,
        "updates": measured.updates,
        "trained_tokens": sums.tokens,
        "entropy": mean(sums.entropy),
        "mismatch_mean": measured.mismatch_mean if sums.tokens else None,
        "mismatch_max": measured.mismatch_max if sums.tokens else None,
        "importance_capped_share": mean(sums.capped),
        "correction_weight_mean": mean(sums.correction),
        "correction_kept_share": mean(sums.kept),
        "clipped_low_share": mean(sums.clipped_low),
        "clipped_high_share": mean(sums.clipped_high),
        "ratio_max": sums.ratio_max if sums.tokens else None,
        "staleness": measured.staleness,
        "kl_to_reference": mean(sums.kl) if measured.has_reference else None,
        **(_critic_metrics(measured, examples) if objective.has_critic else {}),
    }


def _critic_metrics(measured: Measured, examples: Sequence[Example]) -> dict[str, Any]:
    sums, updates = measured.figures, max(1, measured.updates)
    returns = [e.return_N for e in examples if e.return_N is not None]
    values = [e.value_N for e in examples if e.return_N is not None and e.value_N is not None]
    explained = explained_variance(torch.cat(values), torch.cat(returns)) if returns else None
    return {
        "value_loss": sums.value_loss / updates,
        "value_clipped_share": sums.value_clipped / sums.tokens if sums.tokens else None,
        "value_explained_variance": explained,
        "critic_grad_norm": measured.critic_grad_norm,
    }
