"""A learner over the tiny model, and completions that were never sampled."""

from collections.abc import Sequence
from typing import Any

import torch

from graders.outcome import Failure, Outcome, Score
from tests.trainer.hyperparameters import HYPERPARAMETERS, LIMITS
from trainer.data import PromptRow
from trainer.packing import Group
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.reinforcement.critic import make_critic
from trainer.reinforcement.update import Learner
from trainer.rollout.base import Completion
from trainer.sampling import Rollout
from trainer.spec import Hyperparameters, LimitsSpec
from trainer.watch.watch import Watch

FAILED = Failure("sample_parse_error", "not JSON", "g")

#: Ragged groups of completions, and what the grader made of them. One group has no spread, one
#: completion could not be graded, and the last group, by default, was cut as a whole.
COMPLETIONS = [
    [[1, 2, 3, 4, 5], [6], [7, 8]],
    [[9, 10], [11, 12], [13]],
    [[14], [15, 16, 17, 18, 19, 20, 21], [22, 23, 24]],
    [[25, 26, 27], [28], [29, 30]],
]
OUTCOMES: list[list[Outcome | float]] = [
    [1.0, 0.0, 0.5],
    [1.0, 1.0, 1.0],
    [0.0, FAILED, 0.7],
    [1.0, 0.0, 0.0],
]
CUT = frozenset({3})


def hyperparameters(**changes: Any) -> Hyperparameters:
    """Values of a small job with groups of three."""
    small = {"batch_size": 4, "group_size": 3, "max_steps": 10, "max_completion_tokens": 8}
    return Hyperparameters(**{**HYPERPARAMETERS, **small, **changes})


def watch(**limits: Any) -> Watch:
    """A watch that says nothing."""
    return Watch(LimitsSpec(**{**LIMITS, **limits}), lambda _finding: None)


def learner(policy: Policy, hp: Hyperparameters, **changes: Any) -> Learner:
    """A learner with all the networks that the objective needs, each with an optimiser."""
    parts: dict[str, Any] = {
        "reference": policy.reference() if hp.kl_coefficient else None,
        "critic": make_critic(policy) if hp.algorithm == "ppo" else None,
        "team": Team(),
        "watch": watch(),
        "seed": 3,
        "max_mismatch": 0.2,
    }
    parts |= changes
    for network in (policy, parts["critic"]):
        if network is not None and network.optimizer is None:
            network.start_optimizer()
    return Learner(policy, hp, **parts)


def ragged(
    policy: Policy,
    *,
    completions: Sequence[Sequence[list[int]]] = COMPLETIONS,
    outcomes: Sequence[Sequence[Outcome | float]] = OUTCOMES,
    cut: frozenset[int] = CUT,
    shift: float = 0.0,
    temperature: float = 1.0,
) -> list[list[Rollout]]:
    """Groups as the policy itself would have sampled them.

    Args:
        cut: numbers of the groups whose completions were all cut.
        shift: added to the policy's log-probabilities, as by a sampler that differs.
    """
    groups = []
    for index, members in enumerate(completions):
        row = PromptRow(index, [40 + index, 41, 42, *range(index)], [], {})
        with torch.no_grad():
            logp_N, _ = policy.logprobs(
                [Group(row.token_ids, list(members))], temperature=temperature
            )
        logps = iter((logp_N + shift).tolist())
        groups.append(
            [
                Rollout(
                    row,
                    Completion(ids, [next(logps) for _ in ids], truncated=index in cut),
                    "text",
                    Score(outcome) if isinstance(outcome, float) else outcome,
                    0.0,
                )
                for ids, outcome in zip(members, outcomes[index], strict=True)
            ]
        )
    return groups


class Gradients:
    """Stands in for a network's optimiser: keeps what it would have applied, changes nothing."""

    def __init__(self, network: Policy) -> None:
        self._network = network
        self.kept: list[dict[str, torch.Tensor]] = []
        network.update = self._update  # type: ignore[method-assign]

    def _update(self, learning_rate: float) -> float:
        del learning_rate
        self.kept.append({n: _grad(m).clone() for n, m in self._network.masters.items()})
        norm = sum(float(g.square().sum()) for g in self.kept[-1].values()) ** 0.5
        self._network.discard_gradients()
        return norm

    def differ(self, other: "Gradients") -> float:
        """The largest difference of any entry, relative to the largest entry."""
        assert len(self.kept) == len(other.kept) > 0
        pairs = [
            (mine[name], theirs[name])
            for mine, theirs in zip(self.kept, other.kept, strict=True)
            for name in mine
        ]
        largest = max(float(a.abs().max()) for a, _ in pairs)
        assert largest > 0
        return max(float((a - b).abs().max()) for a, b in pairs) / largest


def _grad(master: torch.Tensor) -> torch.Tensor:
    assert master.grad is not None
    return master.grad
