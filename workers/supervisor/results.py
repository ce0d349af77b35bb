"""The result file with the numbers of every step: plain CSV, one row a step."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

#: Column of a reinforcement job's file → where its value stands in a step's metrics.
_REINFORCEMENT = {
    "step": ("step",),
    "train_mean_reward": ("train_mean_reward",),
    "full_valid_mean_reward": ("full_valid_mean_reward",),
    "completion_tokens_mean": ("completion_tokens_mean",),
    "reasoning_tokens_mean": ("reasoning_tokens_mean",),
    "mean_unresponsive_rewards": ("mean_unresponsive_rewards",),
    "sampling_duration": ("timing", "step", "sampling"),
    "training_duration": ("timing", "step", "training"),
    "eval_duration": ("timing", "step", "eval"),
    "total_duration": ("timing", "step", "full_iteration"),
}
_LOOKS = ("train", "valid", "full_valid")
_SUPERVISED = ("loss", "mean_token_accuracy")
_PREFERENCE = (
    *_SUPERVISED,
    "reward_accuracy",
    "mean_reward_margin",
    "mean_preferred_reward",
    "mean_non_preferred_reward",
)


def _offline(figures: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    names = [f"{look}_{figure}" for look in _LOOKS for figure in figures]
    return {name: (name,) for name in ("step", *names)}


_PLAIN = {
    "reinforcement": _REINFORCEMENT,
    "supervised": _offline(_SUPERVISED),
    "dpo": _offline(_PREFERENCE),
}


def step_metrics_csv(steps: Iterable[Mapping[str, Any]], *, method: str) -> bytes:
    """The file ``step_metrics.csv``.

    Its columns are those of OpenAI's files, and for reinforcement those of Azure's RFT scripts.

    Args:
        steps: the metrics of each step, in order; a value that a step lacks is an empty cell.
        method: the type of the job's method.
    """
    plain = _PLAIN[method]
    rows = [_flatten(step, plain) for step in steps]
    columns = list(dict.fromkeys(name for row in rows for name in row)) or list(plain)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _flatten(step: Mapping[str, Any], plain: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    row = {column: _dig(step, path) for column, path in plain.items()}
    for grader in _dig(step, ("scores", "graders")) or ():
        prefix = f"scores/graders/{grader['type']}/{grader['name']}"
        for value in ("train_reward_mean", "valid_reward_mean"):
            row[f"{prefix}/{value}"] = grader.get(value)
    for grader in _dig(step, ("errors", "graders")) or ():
        prefix = f"errors/graders/{grader['type']}/{grader['name']}/errors"
        row |= {
            f"{prefix}/{name}": count for name, count in grader.items() if name.endswith("_count")
        }
    return row


def _dig(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
