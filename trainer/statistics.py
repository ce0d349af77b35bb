"""Intervals for means of a few hundred rows."""

from typing import Any

import numpy as np

#: Resamples of a percentile bootstrap.
RESAMPLES = 10_000
#: Values that are drawn at once, which bounds the memory for many rows.
DRAWN_AT_ONCE = 1_000_000


def interval(values: list[float], *, seed: int = 0) -> dict[str, Any]:
    """Mean of ``values`` with its 95 % percentile-bootstrap interval; all ``None`` when empty."""
    if not values:
        return {"mean": None, "low": None, "high": None}
    array = np.asarray(values, dtype=np.float64)
    draw, size = np.random.default_rng(seed), len(array)
    at_once = max(1, DRAWN_AT_ONCE // size)
    means = [
        array[draw.integers(0, size, size=(min(at_once, RESAMPLES - start), size))].mean(axis=1)
        for start in range(0, RESAMPLES, at_once)
    ]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return {"mean": float(array.mean()), "low": float(low), "high": float(high)}


def paired_gain(before: list[float], after: list[float], *, seed: int = 0) -> dict[str, Any]:
    """Mean of the row-wise differences ``after − before`` with its 95 % interval."""
    return interval([b - a for a, b in zip(before, after, strict=True)], seed=seed)
