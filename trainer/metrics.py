"""One reinforcement step as the metrics that OpenAI's events carry, and ours beside them."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graders.outcome import KINDS, Abstain, Failure, Score
from trainer.evaluation import is_solved, mean_score
from trainer.grader_health import grader_health, grader_parts
from trainer.grader_usage import grader_timing, usage_metrics
from trainer.sampling import Rollout
from trainer.spread import groups_of
from trainer.watch.memory import memory_used
from trainer.watch.signs.lengths import correlation, within_groups
from trainer.watch.signs.view import scored_groups

#: Failure flags that OpenAI's payload counts for every grader; all others count as other_error.
COUNTED_KINDS = ("sample_parse_error", "invalid_variable_error")
#: Further flags that it counts for graders of one type, and for those that ask a model.
PYTHON_KINDS = ("python_grader_server_error", "python_grader_runtime_error")
MODEL_KINDS = ("model_grader_server_error",)
MODEL_GRADERS = frozenset({"score_model", "label_model", "relative_model"})


def step_metrics(
    grader: dict[str, Any],
    train: list[Rollout],
    valid: list[Rollout] | None,
    *,
    step: int,
    total_steps: int,
    update: dict[str, Any],
    group_size: int,
) -> dict[str, Any]:
    """The ``data`` of a step's metrics event.

    Args:
        grader: the grader's JSON, for the names and types of its parts.
        valid: the validation rollouts of this step; ``None`` when none were made.
        step: counts from 1.
        update: what the update measured (loss, mismatch, timing, …).
        group_size: completions of one prompt in a row.
    """
    valid_reward = mean_score(valid) if valid else None
    parts = grader_parts(grader)
    rewards = [r.score for r in train if r.score is not None]
    return {
        "step": step,
        "total_steps": total_steps,
        "train_mean_reward": mean_score(train),
        "full_valid_mean_reward": valid_reward,
        "full_valid_mean_parse_error": _parse_error_share(valid) if valid else None,
        "reasoning_tokens_mean": 0.0,
        "valid_reasoning_tokens_mean": 0.0 if valid else None,
        "completion_tokens_mean": _mean_tokens(train),
        "sampled_tokens": sum(len(r.completion.token_ids) for r in train),
        "mean_unresponsive_rewards": sum(r.score is None for r in train) / len(train),
        "scores": {
            "train_reward_mean": mean_score(train),
            "valid_reward_mean": valid_reward,
            "graders": [
                _part_scores(name, kind, train, valid, is_whole=index == 0)
                for index, (name, kind) in enumerate(parts)
            ],
        },
        "errors": {"graders": [_part_errors(name, kind, train, valid) for name, kind in parts]},
        **usage_metrics(grader, train, valid),
        "train_reward_std": float(np.std(rewards)) if rewards else None,
        "train_reward_quantiles": _quantiles(rewards),
        "completion_tokens_quantiles": _quantiles([len(r.completion.token_ids) for r in train]),
        "length_reward_correlation": correlation(
            within_groups(scored_groups(groups_of(train, group_size)))
        ),
        "train_solved_share": sum(map(is_solved, train)) / len(train),
        "valid_solved_share": sum(map(is_solved, valid)) / len(valid) if valid else None,
        "truncated_share": sum(r.completion.truncated for r in train) / len(train),
        "failures": sum(isinstance(r.outcome, Failure) for r in train),
        "abstentions": sum(isinstance(r.outcome, Abstain) for r in train),
        "grader_latency_mean_s": sum(r.latency_s for r in train) / len(train),
        "graders": grader_health(grader, train),
        **{name: value for name, value in update.items() if name != "timing"},
        "throughput": _throughput(train, update),
        "memory": memory_used(),
        "timing": {
            "step": {"eval": 0.0, **update.get("timing", {}).get("step", {})},
            "graders": grader_timing(grader, train, valid),
        },
    }


def _part_scores(
    name: str, kind: str, train: list[Rollout], valid: list[Rollout] | None, *, is_whole: bool
) -> dict[str, Any]:
    mean = mean_score if is_whole else functools.partial(_part_mean, name)
    return {
        "name": name,
        "type": kind,
        "train_reward_mean": mean(train),
        "valid_reward_mean": mean(valid) if valid else None,
    }


def _part_mean(name: str, rollouts: list[Rollout]) -> float | None:
    values = []
    for rollout in rollouts:
        sub_scores = getattr(rollout.outcome, "sub_scores", {})
        if name in sub_scores:
            values.append(sub_scores[name])
    return sum(values) / len(values) if values else None


def _part_errors(
    name: str, kind: str, train: list[Rollout], valid: list[Rollout] | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "type": kind}
    for split, rollouts in (("train", train), ("valid", valid or [])):
        found = [KINDS[k].flag for r in rollouts for g, k in failures_of(r) if g == name]
        counts = {k: found.count(k) for k in counted_kinds(kind)}
        counts["other_error"] = len(found) - sum(counts.values())
        for error, count in counts.items():
            row[f"{split}_{error}_count"] = count
            row[f"{split}_{error}_mean"] = count / len(rollouts) if rollouts else 0.0
    return row


def counted_kinds(kind: str) -> tuple[str, ...]:
    """The failure flags that are counted apart for a grader of this type."""
    if kind == "python":
        return (*COUNTED_KINDS, *PYTHON_KINDS)
    return (*COUNTED_KINDS, *MODEL_KINDS) if kind in MODEL_GRADERS else COUNTED_KINDS


def failures_of(rollout: Rollout) -> list[tuple[str | None, str]]:
    """Every (grader, kind) that failed on a completion, also where ``invalid_grade`` stood in."""
    outcome = rollout.outcome
    if isinstance(outcome, Failure):
        return [(outcome.grader, outcome.kind)]
    if isinstance(outcome, Score):
        return [(note.grader, note.kind) for note in outcome.notes]
    return []


def _parse_error_share(rollouts: list[Rollout]) -> float:
    hit = sum(any(kind == "sample_parse_error" for _, kind in failures_of(r)) for r in rollouts)
    return hit / len(rollouts)


def _mean_tokens(rollouts: list[Rollout]) -> float:
    return sum(len(r.completion.token_ids) for r in rollouts) / len(rollouts)


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    points = np.percentile(values, [0, 10, 50, 90, 100])
    return dict(zip(("min", "p10", "p50", "p90", "max"), map(float, points), strict=True))


def _throughput(train: list[Rollout], update: dict[str, Any]) -> dict[str, float | None]:
    """Tokens per second of each phase; null for one that took no time or had no tokens."""
    seconds = update.get("timing", {}).get("step", {})
    tokens = {
        "sampling": sum(len(r.completion.token_ids) for r in train),
        "training": update.get("trained_tokens", 0),
    }
    return {
        f"{phase}_tokens_per_s": count / seconds[phase] if count and seconds.get(phase) else None
        for phase, count in tokens.items()
    }
