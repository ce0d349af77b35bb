"""The supervised phase: imitate demonstrations until the validation rows say that it is best."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.demonstrations import Demonstration
from trainer.errors import Diverged
from trainer.packing import TOKEN_BUDGET, Group, micro_batches
from trainer.policy import Policy
from trainer.schedule import rate_share
from trainer.spec import WarmStartSpec

#: How often the validation rows are asked which weights are best.
SELECTIONS = 5


@dataclass
class WarmStartState:
    """How far a warm start is, and the masters of its best weights so far.

    ``best_reward`` is ``None`` until a validation gave one.
    """

    step: int = 0
    trained_tokens: int = 0
    best_step: int = 0
    best_reward: float | None = None
    best: dict[str, Tensor] | None = None

    def wire(self) -> dict[str, Any]:
        """All but the weights, as JSON."""
        return {name: value for name, value in vars(self).items() if name != "best"}


def warm_start(
    policy: Policy,
    demonstrations: list[Demonstration],
    spec: WarmStartSpec,
    *,
    seed: int,
    state: WarmStartState,
    validate: Callable[[], float | None],
    report: Callable[[int, int, dict[str, Any]], None],
    after_step: Callable[[WarmStartState], None],
) -> None:
    """Train on demonstrations; end with the weights that had the best validation reward.

    Args:
        policy: with an optimiser that was started, or read from a checkpoint.
        state: where to begin; kept up to date.
        validate: mean validation reward of the policy as it is; ``None`` when there is none.
        report: called after every update with (step, total steps, metrics).
        after_step: called after every update but the last, when everything about it is in
            ``state``; what it raises ends the warm start there.
    """
    batches = list(_batches(demonstrations, spec, seed))
    checks = {round(len(batches) * (i + 1) / SELECTIONS) for i in range(SELECTIONS)}
    for step, batch in enumerate(batches[state.step :], start=state.step + 1):
        rate = spec.learning_rate * rate_share(step, len(batches))
        loss, tokens = supervised_step(policy, batch, rate)
        metrics: dict[str, Any] = {"train_loss": loss, "learning_rate": rate}
        if step in checks:
            reward = validate()
            metrics["full_valid_mean_reward"] = reward
            _keep_best(state, step, reward, policy)
        state.step, state.trained_tokens = step, state.trained_tokens + tokens
        report(step, len(batches), metrics)
        if step < len(batches):
            after_step(state)
    if state.best is not None and state.best_step < len(batches):
        with torch.no_grad():
            for name, master in policy.masters.items():
                master.copy_(state.best[name])
        policy.refresh()


def _keep_best(state: WarmStartState, step: int, reward: float | None, policy: Policy) -> None:
    # A later equal is preferred: it has seen more.
    if reward is not None and reward >= (
        -math.inf if state.best_reward is None else state.best_reward
    ):
        state.best_step, state.best_reward = step, reward
        state.best = {name: master.detach().clone() for name, master in policy.masters.items()}


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
