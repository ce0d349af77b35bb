"""Losses of preferences and their gradients are TRL's, in float64.

TRL 1.16 runs in an environment of its own, once for all cases.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.preference.losses import PairLoss, dpo, kto, kto_kl, orpo

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-trl/bin/python"
TOLERANCE = 1e-12
LOSSES = ("dpo", "orpo", "kto")


def cases_of(loss: str) -> list[dict[str, Any]]:
    """Ragged pairs with log-probabilities near and far from the reference's."""
    cases = []
    for number, beta in enumerate((0.01, 0.1, 0.5, 2.0) * 4):
        draw = random.Random(f"{loss}:{number}")
        count = draw.randint(1, 5)
        better, worse = (
            [[draw.uniform(-3, -0.001) for _ in range(draw.randint(1, 9))] for _ in range(count)]
            for _ in range(2)
        )
        spread = draw.choice((0.1, 3.0))
        drift = draw.choice((-2.0, 2.0))
        mismatched = [draw.uniform(-30, -1) for _ in range(count)]
        cases.append(
            {
                "loss": loss,
                "beta": beta,
                "better": better,
                "worse": worse,
                "reference": [sum(row) + draw.gauss(0, spread) for row in [*better, *worse]],
                "mismatched": mismatched,
                "reference_mismatched": [x + draw.gauss(drift, spread) for x in mismatched],
            }
        )
    return cases


@pytest.fixture(scope="module")
def answers() -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """For each loss its cases, with TRL's answers."""
    if not PYTHON.exists():
        pytest.fail("TRL is not installed, so losses cannot be compared with its: run `make trl`.")
    cases = [case for loss in LOSSES for case in cases_of(loss)]
    result = subprocess.run(
        [PYTHON, "-W", "ignore", Path(__file__).with_name("trl_oracle.py")],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    found: dict[str, list[Any]] = {loss: [] for loss in LOSSES}
    for case, answer in zip(cases, json.loads(result.stdout), strict=True):
        found[case["loss"]].append((case, answer))
    return found


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_gradients_are_those_of_trl(
    loss: str, answers: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]
) -> None:
    for case, expected in answers[loss]:
        value, gradients = ours(case)
        got, want = [value, *gradients], [expected["loss"], *expected["gradients"]]
        error = max(abs(a - b) for a, b in zip(got, want, strict=True))
        assert error <= TOLERANCE, (error, case)


def test_cases_reach_both_sides_of_the_distance() -> None:
    """A distance that is always 0 would be equal whatever it was made of."""
    distances = [distance(case) for case in cases_of("kto")]
    assert 3 < sum(d > 0 for d in distances) < len(distances) - 3


def ours(case: dict[str, Any]) -> tuple[float, list[float]]:
    """The loss of a case, and the gradients of all log-probabilities."""
    rows = [
        torch.tensor(row, dtype=torch.float64, requires_grad=True)
        for row in [*case["better"], *case["worse"]]
    ]
    loss = output_of(case, rows).loss_B.mean()
    loss.backward()
    return loss.item(), [float(x) for row in rows if row.grad is not None for x in row.grad]


def output_of(case: dict[str, Any], rows: list[torch.Tensor]) -> PairLoss:
    if case["loss"] == "orpo":
        better, worse = torch.stack([row.mean() for row in rows]).chunk(2)
        return orpo(better, worse, beta=case["beta"])
    reference = torch.tensor(case["reference"], dtype=torch.float64)
    better, worse = (torch.stack([row.sum() for row in rows]) - reference).chunk(2)
    if case["loss"] == "kto":
        return kto(better, worse, kl=distance(case), beta=case["beta"])
    return dpo(better, worse, beta=case["beta"])


def distance(case: dict[str, Any]) -> float:
    pairs = zip(case["mismatched"], case["reference_mismatched"], strict=True)
    return kto_kl([now - then for now, then in pairs])
