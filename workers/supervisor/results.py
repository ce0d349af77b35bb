"""The result file with the numbers of every step: plain CSV, one row a step."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

#: Column of the file → where its value stands in a step's metrics.
_PLAIN = {
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


def step_metrics_csv(steps: Iterable[Mapping[str, Any]]) -> bytes:
    """The file ``step_metrics.csv``, with the column names of Azure's RFT scripts.

    Args:
        steps: the metrics of each step, in order; a value that a step lacks is an empty cell.
    """
    rows = [_flatten(step) for step in steps]
    columns = list(dict.fromkeys(name for row in rows for name in row)) or list(_PLAIN)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _flatten(step: Mapping[str, Any]) -> dict[str, Any]:
    row = {column: _dig(step, path) for column, path in _PLAIN.items()}
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
