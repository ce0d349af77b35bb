"""Losses and gradients are TRL's: from the same scores and log-probabilities, in float64.

TRL 1.16 runs in an environment of its own, once for all cases.
"""

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.objectives.trl_cases import ALGORITHMS, cases_of
from trainer.objectives.credit import Judged, assign_credit
from trainer.objectives.kl import kl_estimate
from trainer.objectives.loss import TokenBatch, policy_loss
from trainer.objectives.objective import Objective
from trainer.objectives.weights import token_weights
from trainer.spec import Hyperparameters

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-trl/bin/python"
TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def answers() -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """For each algorithm its cases, with TRL's answers."""
    if not PYTHON.exists():
        pytest.fail("TRL is not installed, so losses cannot be compared with its: run `make trl`.")
    cases = [(name, case) for name in ALGORITHMS for case in cases_of(name)]
    result = subprocess.run(
        [PYTHON, "-W", "ignore", Path(__file__).with_name("trl_oracle.py")],
        input=json.dumps([case for _, case in cases]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    found: dict[str, list[Any]] = {name: [] for name in ALGORITHMS}
    for (name, case), answer in zip(cases, json.loads(result.stdout), strict=True):
        found[name].append((case, answer))
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_losses_and_gradients_are_those_of_trl(
    algorithm: str, answers: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]
) -> None:
    assert len(answers[algorithm]) >= 8
    for case, expected in answers[algorithm]:
        loss, gradients, advantages = ours(case)
        got = [loss, *advantages, *gradients]
        want = [expected["loss"], *expected["advantages"], *expected["gradients"]]
        error = max(abs(a - b) for a, b in zip(got, want, strict=True))
        assert error <= TOLERANCE, (error, case["config"])


def test_cases_reach_what_they_are_to_compare() -> None:
    """Clips, caps and corrections that never bite would be equal whatever they did."""
    low = high = dropped = cut = 0
    for case in (case for name in ("grpo", "gspo", "cispo") for case in cases_of(name)):
        objective, tokens = prepared(case)
        output = policy_loss(tokens, objective)
        low += int(output.clipped_low_N.sum())
        high += int(output.clipped_high_N.sum())
        dropped += int((~output.kept_N).sum())
        cut += int((output.correction_N == objective.correction.high).sum())
    assert min(low, high, dropped, cut) > 100


def ours(case: dict[str, Any]) -> tuple[float, list[float], list[float]]:
    """Loss, gradients of all tokens and advantages, added up over one micro-batch per group."""
    objective, tokens = prepared(case)
    tokens.logp_N.requires_grad_()
    loss, count, size = 0.0, len(case["completions"]), case["group_size"]
    for first in range(0, count, size):
        part_N = (tokens.completion_N >= first) & (tokens.completion_N < first + size)
        fields = {f.name: getattr(tokens, f.name)[part_N] for f in dataclasses.fields(tokens)}
        fields["completion_N"] = fields["completion_N"] - first
        output = policy_loss(TokenBatch(**fields), objective)
        output.loss.backward()
        loss += output.loss.item()
    assert tokens.logp_N.grad is not None
    starts = [int((tokens.completion_N < number).sum()) for number in range(count)]
    return loss, tokens.logp_N.grad.tolist(), tokens.advantage_N[starts].tolist()


def prepared(case: dict[str, Any]) -> tuple[Objective, TokenBatch]:
    """A case's objective, and all its tokens as one batch."""
    hp = Hyperparameters(**case["hyperparameters"])
    objective = Objective.of(hp)
    weighted = case["config"]["weighted_kl"]
    objective = dataclasses.replace(
        objective, kl=dataclasses.replace(objective.kl, weighted=weighted)
    )
    completions = case["completions"]
    lengths = [len(c["logp"]) for c in completions]
    masked = [hp.mask_truncated and c["truncated"] for c in completions]
    judged = [
        Judged(
            c["score"],
            n,
            kl_N=kl_estimate(_flat([c], "old"), _flat([c], "reference"), objective.kl.estimator),
        )
        for c, n in zip(completions, lengths, strict=True)
    ]
    size = case["group_size"]
    groups = [judged[start : start + size] for start in range(0, len(judged), size)]
    credit = [c for group in assign_credit(groups, objective) for c in group]
    counted = [0 if cut else n for n, cut in zip(lengths, masked, strict=True)]
    weights = token_weights(counted, objective, hp.max_completion_tokens)
    length_C = torch.tensor(lengths)
    return objective, TokenBatch(
        logp_N=_flat(completions, "logp"),
        old_logp_N=_flat(completions, "old"),
        sampler_logp_N=_flat(completions, "sampler"),
        advantage_N=torch.cat([c.advantage_N for c in credit]),
        weight_N=torch.tensor(weights, dtype=torch.float64).repeat_interleave(length_C),
        completion_N=torch.arange(len(completions)).repeat_interleave(length_C),
        reference_logp_N=_flat(completions, "reference"),
    )


def _flat(completions: list[dict[str, Any]], name: str) -> torch.Tensor:
    return torch.tensor([x for c in completions for x in c[name]], dtype=torch.float64)
