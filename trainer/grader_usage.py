"""What graders cost in a step, in the form of OpenAI's events: judges' tokens, and seconds."""

from collections import Counter
from typing import Any

from graders.trace import Trace
from trainer.grader_health import grader_parts, traces_of
from trainer.sampling import Rollout

_TOKENS = ("prompt_tokens", "completion_tokens")


def usage_metrics(
    grader: dict[str, Any], train: list[Rollout], valid: list[Rollout] | None
) -> dict[str, Any]:
    """``usage`` and ``model_graders_token_usage`` of a step's event.

    Only graders that ask a model have tokens. The base models here do no separate reasoning, so
    ``usage.samples`` counts none.
    """
    splits = {"train": train, "valid": valid or []}
    by_split = {split: traces_of(grader, rollouts) for split, rollouts in splits.items()}
    graders = [
        {"name": name, "type": kind, "model": model} | _part_usage(key, by_split, splits)
        for key, name, kind in _keyed_parts(grader)
        if (model := _model(key, by_split)) is not None
    ]
    samples = {
        f"{split}_reasoning_tokens_{figure}": value
        for split in splits
        for figure, value in (("mean", 0.0), ("count", 0))
    }
    return {
        "usage": {"graders": graders, "samples": samples},
        "model_graders_token_usage": _per_model(by_split),
    }


def grader_timing(
    grader: dict[str, Any], train: list[Rollout], valid: list[Rollout] | None
) -> list[dict[str, Any]]:
    """``timing.graders`` of a step's event: mean seconds of work, null where there was none."""
    by_split = {"train": traces_of(grader, train), "valid": traces_of(grader, valid or [])}
    return [
        {
            "name": name,
            "type": kind,
            **{
                f"{split}_execution_latency_mean": _mean(
                    [trace.latency_s for trace in traces[key] if not trace.cached]
                )
                for split, traces in by_split.items()
            },
        }
        for key, name, kind in _keyed_parts(grader)
    ]


def _keyed_parts(grader: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Key among the traces, name and type of each grader."""
    (whole, kind), *children = grader_parts(grader)
    return [
        (whole, whole, kind),
        *((name if name != whole else f"{whole}.{name}", name, kind) for name, kind in children),
    ]


def _model(key: str, by_split: dict[str, dict[str, list[Trace]]]) -> str | None:
    asked = (trace.model for traces in by_split.values() for trace in traces[key] if trace.usage)
    return next(asked, None)


def _part_usage(
    key: str, by_split: dict[str, dict[str, list[Trace]]], splits: dict[str, list[Rollout]]
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for split, traces in by_split.items():
        for name in _TOKENS:
            count = sum(getattr(trace.usage, name) for trace in traces[key] if trace.usage)
            figures[f"{split}_{name}_count"] = count
            figures[f"{split}_{name}_mean"] = count / len(splits[split]) if splits[split] else 0.0
    return figures


def _per_model(by_split: dict[str, dict[str, list[Trace]]]) -> dict[str, dict[str, int]]:
    """Tokens of each judge; the part of the prompts that came out of a cache is counted again."""
    totals: dict[str, Counter[str]] = {}
    for split, traces in by_split.items():
        prefix = "train" if split == "train" else "eval"
        for trace in (each for part in traces.values() for each in part):
            if trace.usage is None or trace.model is None:
                continue
            counts = totals.setdefault(trace.model, _no_tokens())
            counts[f"{prefix}_prompt_tokens"] += trace.usage.prompt_tokens
            counts[f"{prefix}_completion_tokens"] += trace.usage.completion_tokens
            counts[f"{prefix}_cached_tokens"] += trace.usage.cached_tokens
    return {model: dict(counts) for model, counts in totals.items()}


def _no_tokens() -> Counter[str]:
    kinds = ("prompt", "completion", "cached")
    return Counter({f"{split}_{kind}_tokens": 0 for split in ("train", "eval") for kind in kinds})


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
