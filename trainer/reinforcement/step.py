"""The reinforcement step: sample and grade, then compare within groups and update."""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.data import PromptRow, batch_for_step
from trainer.errors import Diverged, WeightsMismatch
from trainer.evaluation import is_solved
from trainer.objectives import group_advantages, policy_loss, token_weight
from trainer.packing import Group, micro_batches, split
from trainer.policy import Policy
from trainer.rollout.base import Sampling
from trainer.sampling import Collector, Rollout, check_failures
from trainer.schedule import rate_share
from trainer.spec import Hyperparameters
from trainer.spread import comparable, groups_of

#: Largest weight that a token may get for the sampler's numerical difference.
IMPORTANCE_CAP = 2.0

#: Mean |log π − log μ| per token above which sampler and trainer cannot hold the same weights: two
#: bfloat16 implementations of a model differ by 0.002 to 0.06.
MISMATCH_LIMIT = 0.2

#: Padded tokens of a micro-batch.
TOKEN_BUDGET = 4096


@dataclass(frozen=True)
class Step:
    """One step's rollouts, their advantages, and what the update measured."""

    rollouts: list[Rollout]
    advantages: list[float]
    metrics: dict[str, Any]
    trained_tokens: int

    def add_time(self, *, sync: float, evaluation: float) -> None:
        """Count the seconds that the step spent outside of sampling and training."""
        seconds = self.metrics["timing"]["step"]
        seconds["sync"], seconds["eval"] = sync, evaluation
        seconds["full_iteration"] += sync + evaluation


@dataclass(frozen=True)
class Sampled:
    """The graded rollouts of one step, group after group, and the seconds that they took."""

    rollouts: list[Rollout]
    seconds: float


@dataclass
class _Sums:
    """Per-token figures added up over the micro-batches of one update."""

    loss: float = 0.0
    tokens: int = 0
    entropy: float = 0.0
    mismatch: float = 0.0
    mismatch_max: float = 0.0
    capped: int = 0
    kl: float = 0.0

    def add(self, loss: float, mismatch: Tensor, entropy: Tensor, importance: Tensor) -> None:
        self.loss += loss
        self.tokens += len(mismatch)
        self.entropy += entropy.sum().item()
        self.mismatch += mismatch.sum().item()
        self.mismatch_max = max(self.mismatch_max, mismatch.max().item())
        self.capped += int((importance >= IMPORTANCE_CAP).sum())


def sample_step(
    collector: Collector, rows: list[PromptRow], hp: Hyperparameters, *, step: int, seed: int
) -> Sampled:
    """Sample and grade a group for each row of one step.

    Args:
        step: counts from 0; together with ``seed`` it fixes rows and draws.
    """
    started = time.perf_counter()
    picked = batch_for_step(rows, step, hp.batch_size, seed)
    repeated = [row for row in picked for _ in range(hp.group_size)]
    draws = Sampling(hp.temperature, hp.max_completion_tokens, seed=draw_seed(seed, step))
    rollouts = collector.collect(repeated, draws, group_size=hp.group_size)
    return Sampled(rollouts, time.perf_counter() - started)


def grpo_step(
    policy: Policy,
    reference: Policy | None,
    sampled: Sampled,
    hp: Hyperparameters,
    *,
    step: int,
    failure_share_limit: float,
) -> Step:
    """Compare the completions of each group, and update the policy once.

    Args:
        sampled: what ``sample_step`` made with the policy as it is.
        step: counts from 0.

    Raises:
        GraderFailures: more than ``failure_share_limit`` of the completions could not be graded.
        WeightsMismatch, Diverged: see :mod:`trainer.errors`; the policy is untouched.
    """
    started = time.perf_counter()
    rollouts = sampled.rollouts
    check_failures(rollouts, failure_share_limit)
    groups = groups_of(rollouts, hp.group_size)
    advantages = [
        group_advantages([comparable(r) for r in g], scale_by_std=hp.algorithm == "grpo")
        for g in groups
    ]
    rate = hp.learning_rate * rate_share(step + 1, hp.max_steps)
    update = _update(policy, reference, groups, advantages, hp, rate)
    training = time.perf_counter() - started
    timing = {
        "sampling": sampled.seconds,
        "training": training,
        "full_iteration": sampled.seconds + training,
    }
    flat = [a for group in advantages for a in group]
    return Step(rollouts, flat, {**update, "timing": {"step": timing}}, update["trained_tokens"])


def _update(
    policy: Policy,
    reference: Policy | None,
    groups: list[list[Rollout]],
    advantages: list[list[float]],
    hp: Hyperparameters,
    learning_rate: float,
) -> dict[str, Any]:
    completions = sum(map(len, groups))
    learning = [
        _learning_part(group, group_advantage, reference is not None)
        for group, group_advantage in zip(groups, advantages, strict=True)
    ]
    rows = [row for part in learning for row in _rows(part)]
    packed = [group for group, _ in rows]
    sums = _Sums()
    for indices in micro_batches(packed, TOKEN_BUDGET):
        chosen = [pair for i in indices for pair in rows[i][1]]
        sampler_logp, advantage, weight = _token_tensors(chosen, completions, hp, policy.device)
        part = [packed[i] for i in indices]
        logp, entropy = policy.logprobs(part, temperature=hp.temperature)
        reference_logp = None
        if reference is not None:
            with torch.no_grad():
                reference_logp, _ = reference.logprobs(part, temperature=hp.temperature)
        output = policy_loss(
            logp,
            sampler_logp,
            advantage,
            weight,
            importance_cap=IMPORTANCE_CAP,
            reference_logp_N=reference_logp,
            kl_coefficient=hp.kl_coefficient,
        )
        mismatch = (logp.detach() - sampler_logp).abs()
        sums.add(output.loss.item(), mismatch, entropy, output.importance)
        if output.kl_to_reference is not None:
            sums.kl += output.kl_to_reference.sum().item()
        output.loss.backward()  # type: ignore[no-untyped-call]
    _guard(policy, sums)
    grad_norm = policy.update(learning_rate) if sums.tokens else 0.0
    figures = _update_metrics(sums, groups, advantages, reference)
    return {**figures, "grad_norm": grad_norm, "learning_rate": learning_rate}


def _learning_part(
    group: list[Rollout], advantages: list[float], keep_all: bool
) -> list[tuple[Rollout, float]]:
    # Without advantage there is no gradient (unless a KL term pulls): the forward is saved too.
    return [
        (rollout, advantage)
        for rollout, advantage in zip(group, advantages, strict=True)
        if not rollout.completion.truncated and (keep_all or advantage != 0.0)
    ]


def _rows(
    part: list[tuple[Rollout, float]],
) -> Iterator[tuple[Group, list[tuple[Rollout, float]]]]:
    """The rows that a group is spread over, each with what learns from it."""
    if not part:
        return
    group = Group(part[0][0].row.token_ids, [r.completion.token_ids for r, _ in part])
    pairs = iter(part)
    for row in split(group, TOKEN_BUDGET):
        yield row, list(itertools.islice(pairs, len(row.completions)))


def _token_tensors(
    chosen: list[tuple[Rollout, float]],
    completions: int,
    hp: Hyperparameters,
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor]:
    sampler_logp, advantage, weight = [], [], []
    for rollout, value in chosen:
        length = len(rollout.completion.token_ids)
        token = token_weight(
            hp.algorithm,
            length=length,
            completions=completions,
            max_length=hp.max_completion_tokens,
        )
        sampler_logp += rollout.completion.logprobs
        advantage += [value] * length
        weight += [token] * length
    return (
        torch.tensor(sampler_logp, device=device),
        torch.tensor(advantage, device=device),
        torch.tensor(weight, device=device),
    )


def _guard(policy: Policy, sums: _Sums) -> None:
    if not math.isfinite(sums.loss):
        policy.discard_gradients()
        raise Diverged("The loss is not finite. Lower learning_rate or raise kl_coefficient.")
    if sums.tokens and sums.mismatch / sums.tokens > MISMATCH_LIMIT:
        policy.discard_gradients()
        raise WeightsMismatch(
            f"Sampler and trainer differ by {sums.mismatch / sums.tokens:.2f} nats per token "
            f"(limit {MISMATCH_LIMIT}): the sampler does not use the trainer's weights."
        )


def _update_metrics(
    sums: _Sums,
    groups: list[list[Rollout]],
    advantages: list[list[float]],
    reference: Policy | None,
) -> dict[str, Any]:
    per_token = max(1, sums.tokens)
    solved = [[is_solved(r) for r in group] for group in groups]
    return {
        "loss": sums.loss,
        "entropy": sums.entropy / per_token,
        "mismatch_mean": sums.mismatch / per_token,
        "mismatch_max": sums.mismatch_max,
        "importance_capped_share": sums.capped / per_token,
        "kl_to_reference": sums.kl / per_token if reference is not None else None,
        "groups_without_spread": sum(not any(a) for a in advantages),
        "groups_all_right": sum(all(s) for s in solved),
        "groups_all_wrong": sum(not any(s) for s in solved),
        "trained_tokens": sums.tokens,
    }


def draw_seed(seed: int, step: int) -> int:
    """The seed of a step's draws: far apart for neighbouring steps and jobs."""
    # Within what torch accepts.
    return (seed * 1_000_003 + step * 7_919 + 1) % 2**31
