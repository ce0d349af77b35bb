"""What updates measured, against hand-counted values."""

import pytest
import torch

from tests.trainer.objectives.objectives import objective
from trainer.objectives.loss import LossOutput
from trainer.objectives.objective import Correction
from trainer.reinforcement.figures import Figures, Measured, update_metrics


def _output(*, loss: float, ratio: list[float]) -> LossOutput:
    """Four tokens: one was clipped as too low, two as too high, one dropped, two cut at 2."""
    return LossOutput(
        loss=torch.tensor(loss),
        ratio_N=torch.tensor(ratio),
        clipped_low_N=torch.tensor([True, False, False, False]),
        clipped_high_N=torch.tensor([False, True, True, False]),
        correction_N=torch.tensor([0.0, 2.0, 2.0, 1.0]),
        kept_N=torch.tensor([False, True, True, True]),
        kl_N=torch.tensor([0.0, 0.1, 0.2, 0.1]),
    )


@pytest.mark.parametrize(("kind", "capped"), [("token_truncate", 0.5), ("token_mask", 0.0)])
def test_figures_are_means_over_tokens_and_losses_over_updates(kind: str, capped: float) -> None:
    correction = Correction(kind, 0.0, 2.0)  # type: ignore[arg-type]
    entropy_N = torch.tensor([1.0, 2.0, 3.0, 4.0])
    passes = [
        Figures.of_policy(_output(loss=loss, ratio=ratio), entropy_N, correction)
        for loss, ratio in ((0.5, [0.5, 1.5, 3.0, 1.0]), (-0.1, [0.5, 1.5, 2.0, 1.0]))
    ]
    measured = Measured(Figures.sum(passes), updates=2, has_reference=True)
    got = update_metrics(measured, [], objective("grpo"))
    want = {
        "loss": 0.2,
        "updates": 2,
        "trained_tokens": 8,
        "entropy": 2.5,
        "clipped_low_share": 0.25,
        "clipped_high_share": 0.5,
        "importance_capped_share": capped,
        "correction_weight_mean": 1.25,
        "correction_kept_share": 0.75,
        "kl_to_reference": 0.1,
        "ratio_max": 3.0,
    }
    assert {name: got[name] for name in want} == pytest.approx(want)
