"""What the full job would take: a range from the rates that the dry run measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.objectives.objective import Objective
from trainer.sampling import Rollout
from trainer.spec import DryRunSpec, TrainSpec
from trainer.spread import Spread

#: Completions often grow while a model learns; the upper end has them this much longer.
GROWTH = 1.5
#: The upper end adds this share for what was not measured: weight sync, checkpoints, evaluation.
UNMEASURED = 0.25


@dataclass(frozen=True)
class Rates:
    """What was measured; ``update_tokens_per_s`` counts completion tokens, forward and backward."""

    completions_per_s: float
    tokens_per_s: float
    update_tokens_per_s: float
    grading_latency_mean_s: float
    #: Whether what warms the engine up was left out.
    warmed_up: bool

    @classmethod
    def of(
        cls, parts: Sequence[tuple[list[Rollout], float]], *, update_tokens_per_s: float
    ) -> "Rates":
        """Rates of parts of rollouts and their seconds; the first part, which warms up, is left out
        where there are others."""
        timed = parts[1:] or parts
        rollouts = [rollout for part, _ in timed for rollout in part]
        seconds = sum(seconds for _, seconds in timed)
        tokens = sum(len(r.completion.token_ids) for r in rollouts)
        return cls(
            completions_per_s=len(rollouts) / seconds,
            tokens_per_s=tokens / seconds,
            update_tokens_per_s=update_tokens_per_s,
            grading_latency_mean_s=sum(r.latency_s for r in rollouts) / len(rollouts),
            warmed_up=len(parts) > 1,
        )


def estimate(
    spec: TrainSpec,
    plan: DryRunSpec,
    rollouts: list[Rollout],
    spread: Spread,
    rates: Rates,
    *,
    validation_rows: int,
) -> dict[str, Any]:
    """The ``estimate`` of the report."""
    hp = spec.reinforcement.hyperparameters
    training = hp.max_steps * hp.batch_size * hp.group_size
    evaluations = _evaluation_completions(spec, validation_rows)
    completions = training + evaluations
    length = sum(len(r.completion.token_ids) for r in rollouts) / len(rollouts)
    growth = max(1.0, min(GROWTH, hp.max_completion_tokens / length))
    # Of algorithms that compare groups, those without spread need no update.
    learnt = 1 - spread.share_without if Objective.of(hp).compares_groups else 1.0
    sampling_s = completions / rates.completions_per_s
    update_s = hp.rollout_epochs * training * length / rates.update_tokens_per_s
    parts = sampling_s, update_s * learnt
    # Where the next step is sampled beside the update, the longer of the two may be all.
    low = max(parts) if hp.max_staleness else sum(parts)
    again_s = hp.resample_rounds * spread.share_without * training / rates.completions_per_s
    high = (sampling_s + again_s + update_s) * growth * (1 + UNMEASURED)
    return {
        "plan": {
            "steps": hp.max_steps,
            "prompts_per_step": hp.batch_size,
            "completions_per_prompt": hp.group_size,
            "training_completions": training,
            "evaluation_completions": evaluations,
        },
        "measured": {
            "sampling_completions_per_s": rates.completions_per_s,
            "sampling_tokens_per_s": rates.tokens_per_s,
            "update_tokens_per_s": rates.update_tokens_per_s,
            "grading_latency_mean_s": rates.grading_latency_mean_s,
        },
        "seconds": {"low": low, "high": high},
        "cost": _cost(plan, low, high),
        "judge_tokens": _judge_tokens(rollouts, completions, growth),
        "made_of": _made_of(spec, rates, completions, learnt, growth),
    }


def _evaluation_completions(spec: TrainSpec, validation_rows: int) -> int:
    if not validation_rows:
        return 0
    hp = spec.reinforcement.hyperparameters
    whole = 2 if spec.reinforcement.warm_start is None else 3
    between = (hp.max_steps - 1) // hp.eval_interval
    return whole * validation_rows + between * min(hp.eval_samples, validation_rows)


def _cost(plan: DryRunSpec, low_s: float, high_s: float) -> dict[str, Any] | None:
    if plan.price_per_hour is None:
        return None
    return {
        "low": low_s / 3600 * plan.price_per_hour,
        "high": high_s / 3600 * plan.price_per_hour,
        "currency": plan.currency,
        "price_per_hour": plan.price_per_hour,
    }


def _judge_tokens(rollouts: list[Rollout], completions: int, growth: float) -> list[dict[str, Any]]:
    used: dict[str, tuple[int, int]] = {}
    for trace in (trace for rollout in rollouts for trace in rollout.traces):
        if trace.model is not None and trace.usage is not None:
            prompt, total = used.get(trace.model, (0, 0))
            used[trace.model] = (
                prompt + trace.usage.prompt_tokens,
                total + trace.usage.total_tokens,
            )
    scale = completions / len(rollouts)
    return [
        {
            "model": model,
            "low": round(total * scale),
            "high": math.ceil(total * scale * growth),
            "prompt_share": prompt / total,
            # The supervisor knows the prices.
            "cost": None,
        }
        for model, (prompt, total) in sorted(used.items())
        if total
    ]


def _extras(spec: TrainSpec) -> list[str]:
    """What hyperparameters add to one pass over one sample of each row."""
    hp = spec.reinforcement.hyperparameters
    said = []
    if hp.rollout_epochs > 1:
        said.append(f"Each step's completions are trained on {hp.rollout_epochs} times.")
    if hp.resample_rounds:
        said.append(
            f"The upper end samples groups without spread again in {hp.resample_rounds} rounds."
        )
    if hp.max_staleness:
        said.append("The lower end has sampling and updates take place beside each other.")
    return said


def _made_of(
    spec: TrainSpec, rates: Rates, completions: int, learnt: float, growth: float
) -> list[str]:
    said = [
        f"Sampling with grading beside it: {completions:,} completions at the measured "
        f"{rates.completions_per_s:.3g} a second.",
        f"Updates: {rates.update_tokens_per_s:.3g} completion tokens a second, measured by one "
        "micro-batch forward and backward; the lower end counts the "
        f"{learnt:.0%} of the groups that teach something, the upper end all.",
        *_extras(spec),
        f"The upper end has completions grow to {growth:.3g} times their length and adds "
        f"{UNMEASURED:.0%} for weight sync, checkpoints and the rest.",
        "Waiting in the queue and loading the model are not in it.",
    ]
    if not rates.warmed_up:
        said.append(
            "So few completions were sampled that the time for the engine to warm up is in the"
            " rate; the job is likely faster."
        )
    if spec.reinforcement.warm_start is not None:
        said.append("The warm start is not in it; after it completions may be longer or shorter.")
    return said
