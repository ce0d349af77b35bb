"""What one reinforcement step leaves out, and when it refuses to go on."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graders.client import Reply
from graders.outcome import Failure, Outcome, Score
from tests.trainer.hyperparameters import HYPERPARAMETERS
from trainer.data import PromptRow, batch_for_step
from trainer.errors import Diverged, GraderFailures, WeightsMismatch
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reinforcement import step as grpo
from trainer.reinforcement.step import grpo_step, sample_step
from trainer.rollout.base import Completion, Sampling
from trainer.sampling import Collector
from trainer.spec import Hyperparameters

HP = Hyperparameters(
    **{
        **HYPERPARAMETERS,
        "batch_size": 2,
        "group_size": 2,
        "max_steps": 10,
        "learning_rate": 1e-2,
        "max_completion_tokens": 4,
        "eval_interval": 1,
        "eval_samples": 0,
    }
)
ROWS = [PromptRow(i, [10 + i, 11, 12], [], {}) for i in range(2)]
COMPLETIONS = [[1, 2], [3], [4, 5, 6], [7]]


class Scripted:
    """An engine and a grader that say what they are told to."""

    def __init__(
        self,
        policy: Policy,
        outcomes: list[Outcome],
        *,
        cut: set[int] = frozenset(),
        shift: float = 0,
    ) -> None:
        self.policy, self.outcomes, self.cut, self.shift = policy, outcomes, cut, shift
        self.asked: list[int] = []

    def generate(
        self, prompts: list[list[int]], sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        del sampling
        for index, prompt in enumerate(prompts):
            group = Group(prompt, [COMPLETIONS[index]])
            with torch.no_grad():
                logp, _ = self.policy.logprobs([group], temperature=1.0)
            shifted = (logp + self.shift).tolist()
            yield index, Completion(COMPLETIONS[index], shifted, truncated=index in self.cut)

    def load_weights(self, policy: Policy) -> None:
        del policy

    def submit(
        self,
        id: int,
        sample: dict[str, Any],
        item: dict[str, Any],
        *,
        group: tuple[int, int] | None = None,
    ) -> None:
        del sample, item, group
        self.asked.append(id)

    def receive(self) -> Reply:
        index = self.asked.pop()
        return Reply(index, self.outcomes[index], 0.0)


def _step(policy: Policy, scripted: Scripted, hp: Hyperparameters = HP) -> grpo.Step:
    if policy.optimizer is None:
        policy.start_optimizer()
    collector = Collector(scripted, scripted, policy.tokenizer, lambda _done, _total: None)
    sampled = sample_step(collector, ROWS, hp, step=0, seed=0)
    return grpo_step(policy, None, sampled, hp, step=0, failure_share_limit=0.5)


def _weights(policy: Policy) -> list[torch.Tensor]:
    return [m.detach().clone() for m in policy.masters.values()]


def _same(policy: Policy, before: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(_weights(policy), before, strict=True))


def test_groups_without_spread_are_left_out(tiny_policy: Policy) -> None:
    before = _weights(tiny_policy)
    step = _step(tiny_policy, Scripted(tiny_policy, [Score(1.0)] * 2 + [Score(0.0)] * 2))
    assert step.metrics["groups_without_spread"] == 2
    assert step.metrics["groups_all_right"] == step.metrics["groups_all_wrong"] == 1
    assert step.trained_tokens == 0
    assert _same(tiny_policy, before)


def test_a_cut_completion_takes_no_part(tiny_policy: Policy) -> None:
    outcomes: list[Outcome] = [Score(1.0), Score(0.0), Score(1.0), Score(0.0)]
    step = _step(tiny_policy, Scripted(tiny_policy, outcomes, cut=(0,)))
    assert step.advantages[:2] == [0.0, 0.0]
    assert step.advantages[2] > 0 > step.advantages[3]
    assert step.trained_tokens == len(COMPLETIONS[2]) + len(COMPLETIONS[3])


def test_the_better_completion_becomes_likelier(tiny_policy: Policy) -> None:
    first = batch_for_step(ROWS, 0, 2, 0)[0]
    group = Group(first.token_ids, COMPLETIONS[:2])

    def preference() -> float:
        with torch.no_grad():
            logp, _ = tiny_policy.logprobs([group], temperature=1.0)
        return (logp[:2].sum() - logp[2]).item()

    outcomes: list[Outcome] = [Score(1.0), Score(0.0), Score(0.5), Score(0.5)]
    before = preference()
    for _ in range(3):
        _step(tiny_policy, Scripted(tiny_policy, outcomes))
    assert preference() > before + 0.1


def test_a_wide_group_is_spread_over_rows_with_the_same_result(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Outcome] = [Score(1.0), Score(0.0), Score(0.0), Score(1.0)]
    hp = HP.model_copy(update={"learning_rate": 1e-12})
    together = _step(tiny_policy, Scripted(tiny_policy, outcomes), hp).metrics
    monkeypatch.setattr(grpo, "TOKEN_BUDGET", 5)
    spread = _step(tiny_policy, Scripted(tiny_policy, outcomes), hp).metrics
    assert together["trained_tokens"] == spread["trained_tokens"] == 7
    assert spread["loss"] == pytest.approx(together["loss"], abs=1e-6)
    assert spread["grad_norm"] == pytest.approx(together["grad_norm"], rel=1e-4)


def test_a_sampler_with_other_weights_stops_the_step(tiny_policy: Policy) -> None:
    before = _weights(tiny_policy)
    outcomes: list[Outcome] = [Score(1.0), Score(0.0)] * 2
    with pytest.raises(WeightsMismatch, match=r"differ by 0.50 nats per token"):
        _step(tiny_policy, Scripted(tiny_policy, outcomes, shift=0.5))
    assert _same(tiny_policy, before)


def test_a_loss_that_is_not_finite_stops_the_step(tiny_policy: Policy) -> None:
    before = _weights(tiny_policy)
    outcomes: list[Outcome] = [Score(1.0), Score(0.0)] * 2
    with pytest.raises(Diverged, match="not finite"):
        _step(tiny_policy, Scripted(tiny_policy, outcomes, shift=float("nan")))
    assert _same(tiny_policy, before)


def test_failures_beyond_the_limit_stop_the_step(tiny_policy: Policy) -> None:
    failed = Failure("sample_parse_error", "not JSON", "g")
    with pytest.raises(GraderFailures, match=r"3 of 4 completions .* limit of 50%"):
        _step(tiny_policy, Scripted(tiny_policy, [failed, failed, failed, Score(1.0)]))
    _step(tiny_policy, Scripted(tiny_policy, [failed, failed, Score(0.0), Score(1.0)]))
