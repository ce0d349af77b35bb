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
from trainer.means import Means
from trainer.policy import Policy
from trainer.schedule import rate_share
from trainer.spec import WarmStartSpec
from trainer.watch.watch import Watch

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
    learn: Callable[[list[Demonstration]], Means],
    validate: Callable[[], float | None],
    watch: Watch,
    report: Callable[[int, int, dict[str, Any]], None],
    after_step: Callable[[WarmStartState], None],
) -> None:
    """Train on demonstrations; end with the weights that had the best validation reward.

    Args:
        policy: with an optimiser that was started, or read from a checkpoint.
        state: where to begin; kept up to date.
        learn: adds up the gradients of an update and returns its figures.
        validate: mean validation reward of the policy as it is; ``None`` when there is none.
        watch: may end it early.
        report: called after every update with (step, total steps, metrics).
        after_step: called after every update but the last, when everything about it is in
            ``state``; what it raises ends the warm start there.
    """
    batches = list(_batches(demonstrations, spec, seed))
    checks = {round(len(batches) * (i + 1) / SELECTIONS) for i in range(SELECTIONS)}
    for step, batch in enumerate(batches[state.step :], start=state.step + 1):
        if watch.before_step("warm_start"):
            break
        rate = spec.learning_rate * rate_share(step, len(batches))
        figures = learn(batch)
        if not math.isfinite(figures["loss"]):
            raise Diverged("The warm start's loss is not finite. Lower warm_start.learning_rate.")
        norm, tokens = policy.update(rate), sum(d.tokens for d in batch)
        watch.counted("warm_start", tokens)
        metrics: dict[str, Any] = {
            **figures.named("train"),
            "learning_rate": rate,
            "grad_norm": norm,
            "trained_tokens": tokens,
        }
        if step in checks:
            reward = validate()
            metrics["full_valid_mean_reward"] = reward
            _keep_best(state, step, reward, policy)
        state.step, state.trained_tokens = step, state.trained_tokens + tokens
        report(step, len(batches), metrics)
        if step < len(batches):
            after_step(state)
    if state.best is not None and state.best_step < state.step:
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


def _batches(
    demonstrations: list[Demonstration], spec: WarmStartSpec, seed: int
) -> Iterator[list[Demonstration]]:
    size = min(spec.batch_size, len(demonstrations))
    for epoch in range(spec.epochs):
        order = list(range(len(demonstrations)))
        random.Random(f"{seed}:warm:{epoch}").shuffle(order)
        for start in range(0, len(order), size):
            yield [demonstrations[i] for i in order[start : start + size]]
