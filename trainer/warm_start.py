"""The supervised phase: imitate demonstrations until the validation rows say that it is best."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from trainer.data import Demonstration
from trainer.errors import Diverged
from trainer.packing import Group, micro_batches
from trainer.policy import Policy
from trainer.schedule import rate_share
from trainer.spec import WarmStartSpec

#: How often the validation rows are asked which weights are best.
SELECTIONS = 5

#: Padded tokens of a micro-batch.
TOKEN_BUDGET = 4096


@dataclass(frozen=True)
class WarmStartResult:
    """What the supervised phase did."""

    trained_tokens: int
    best_step: int
    best_reward: float | None


def warm_start(
    policy: Policy,
    demonstrations: list[Demonstration],
    spec: WarmStartSpec,
    *,
    seed: int,
    validate: Callable[[], float | None],
    report: Callable[[int, int, dict[str, Any]], None],
) -> WarmStartResult:
    """Train on demonstrations; end with the weights that had the best validation reward.

    Args:
        validate: mean validation reward of the policy as it is; ``None`` when there is none.
        report: called after every update with (step, total steps, metrics).
    """
    policy.start_optimizer()
    batches = list(_batches(demonstrations, spec, seed))
    checks = {round(len(batches) * (i + 1) / SELECTIONS) for i in range(SELECTIONS)}
    best_reward, best_step, best = -math.inf, 0, None
    tokens = 0
    for step, batch in enumerate(batches, start=1):
        rate = spec.learning_rate * rate_share(step, len(batches))
        loss, batch_tokens = supervised_step(policy, batch, rate)
        tokens += batch_tokens
        metrics: dict[str, Any] = {"train_loss": loss, "learning_rate": rate}
        if step in checks:
            reward = validate()
            metrics["full_valid_mean_reward"] = reward
            # A later equal is preferred: it has seen more.
            if reward is not None and reward >= best_reward:
                best_reward, best_step = reward, step
                best = {n: m.detach().clone() for n, m in policy.masters.items()}
        report(step, len(batches), metrics)
    if best is not None and best_step < len(batches):
        with torch.no_grad():
            for name, master in policy.masters.items():
                master.copy_(best[name])
        policy.refresh()
    return WarmStartResult(
        tokens,
        best_step if best is not None else len(batches),
        best_reward if best is not None else None,
    )


def supervised_step(
    policy: Policy, batch: list[Demonstration], learning_rate: float
) -> tuple[float, int]:
    """One update on the mean negative log-likelihood of all target tokens of the batch.

    Returns:
        The loss in nats per token, and how many tokens it is over.
    """
    groups = [Group(d.prompt_ids, [d.target_ids]) for d in batch]
    tokens = sum(len(d.target_ids) for d in batch)
    total = 0.0
    for indices in micro_batches(groups, TOKEN_BUDGET):
        logp, _ = policy.logprobs([groups[i] for i in indices], temperature=1.0)
        loss = -logp.sum() / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    if not math.isfinite(total):
        raise Diverged("The warm start's loss is not finite. Lower warm_start.learning_rate.")
    policy.update(learning_rate)
    return total, tokens


def _batches(
    demonstrations: list[Demonstration], spec: WarmStartSpec, seed: int
) -> Iterator[list[Demonstration]]:
    size = min(spec.batch_size, len(demonstrations))
    for epoch in range(spec.epochs):
        order = list(range(len(demonstrations)))
        random.Random(f"{seed}:warm:{epoch}").shuffle(order)
        for start in range(0, len(order), size):
            yield [demonstrations[i] for i in order[start : start + size]]
