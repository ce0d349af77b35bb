"""A sampler that does not hold the trainer's weights is found out."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.reinforcement.learners import ragged
from tests.trainer.reports import reports_of
from trainer.errors import WeightsMismatch
from trainer.policy import Policy
from trainer.reinforcement.sync import check_follows, check_greedy, mismatch
from trainer.rollout.transformers_engine import TransformersEngine
from trainer.sampling import Rollout


def _rollouts(policy: Policy, shift: float) -> list[Rollout]:
    return [rollout for group in ragged(policy, shift=shift) for rollout in group]


def test_greedy_completions_are_held_to_the_policy(tiny_policy: Policy) -> None:
    check_greedy(tiny_policy, _rollouts(tiny_policy, 0.1), 0.2)
    with pytest.raises(WeightsMismatch, match=r"differ by 0.30 nats per token \(limit 0.2\)"):
        check_greedy(tiny_policy, _rollouts(tiny_policy, 0.3), 0.2)


def test_a_policy_that_runs_ahead_of_its_samples_is_told_apart() -> None:
    old_N, sampler_N = torch.zeros(2), torch.tensor([0.1, 0.5])
    assert mismatch(old_N, sampler_N, 0.4, staleness=1) == pytest.approx((0.3, 0.5))
    with pytest.raises(WeightsMismatch, match="set max_staleness to 0"):
        mismatch(old_N, sampler_N, 0.2, staleness=1)


def test_a_difference_that_is_no_number_is_one(tiny_policy: Policy) -> None:
    rollouts = _rollouts(tiny_policy, 0.0)
    completion = rollouts[0].completion
    spoilt = dataclasses.replace(
        rollouts[0],
        completion=dataclasses.replace(
            completion, logprobs=[float("nan")] * len(completion.logprobs)
        ),
    )
    with pytest.raises(WeightsMismatch):
        check_greedy(tiny_policy, [spoilt, *rollouts[1:]], 0.2)


@pytest.mark.parametrize("steps", [1, 4])
def test_a_job_whose_sampler_keeps_old_weights_ends(
    make_job: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    load = TransformersEngine.load_weights
    calls = 0

    def forget(self: TransformersEngine, policy: Policy) -> None:
        nonlocal calls
        calls += 1
        if calls <= 2:  # it follows while it is looked at, and then no more
            load(self, policy)

    monkeypatch.setattr(TransformersEngine, "load_weights", forget)
    values: dict[str, Any] = {"max_steps": steps, "mask_truncated": False}
    with pytest.raises(WeightsMismatch, match="does not use the trainer's weights"):
        reports_of(make_job(hyperparameters=values))


class Forgetful(TransformersEngine):
    """Takes over all weights but those whose name ends so."""

    def __init__(self, policy: Policy, suffix: str) -> None:
        super().__init__(policy)
        self._suffix = suffix

    def load_weights(self, policy: Policy) -> None:
        kept = {n: p.clone() for n, p in self._model.named_parameters() if n.endswith(self._suffix)}
        super().load_weights(policy)
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                if name in kept:
                    parameter.copy_(kept[name])


PROMPTS = [[10, 11, 12], [20, 21]]


@pytest.mark.parametrize("policy", ["tiny_policy", "tiny_lora_policy"])
def test_a_sampler_that_follows_leaves_no_trace(
    policy: str, request: pytest.FixtureRequest
) -> None:
    subject: Policy = request.getfixturevalue(policy)
    engine = TransformersEngine(subject)
    masters = {name: master.clone() for name, master in subject.masters.items()}
    weights = {n: p.clone() for n, p in subject.model.named_parameters()}
    check_follows(subject, engine, PROMPTS)
    assert all(torch.equal(masters[n], m) for n, m in subject.masters.items())
    assert all(torch.equal(weights[n], p) for n, p in subject.model.named_parameters())
    assert all(torch.equal(weights[n], p) for n, p in engine._model.named_parameters())


@pytest.mark.parametrize("suffix", ["embed_tokens.weight", "model.norm.weight"])
def test_one_forgotten_matrix_is_found_out(tiny_policy: Policy, suffix: str) -> None:
    with pytest.raises(WeightsMismatch, match="does not take over all"):
        check_follows(tiny_policy, Forgetful(tiny_policy, suffix), PROMPTS)


def test_an_adapter_that_never_arrives_is_found_out(tiny_lora_policy: Policy) -> None:
    with pytest.raises(WeightsMismatch, match="does not take over all"):
        check_follows(tiny_lora_policy, Forgetful(tiny_lora_policy, ""), PROMPTS)
