"""Intervals for means of a few hundred rows."""

from typing import Any

import numpy as np

#: Resamples of a percentile bootstrap.
RESAMPLES = 10_000


def interval(values: list[float], *, seed: int = 0) -> dict[str, Any]:
    """Mean of ``values`` with its 95 % percentile-bootstrap interval; all ``None`` when empty."""
    if not values:
        return {"mean": None, "low": None, "high": None}
    array = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(array), size=(RESAMPLES, len(array)))
    low, high = np.percentile(array[picks].mean(axis=1), [2.5, 97.5])
    return {"mean": float(array.mean()), "low": float(low), "high": float(high)}


def paired_gain(before: list[float], after: list[float], *, seed: int = 0) -> dict[str, Any]:
    """Mean of the row-wise differences ``after − before`` with its 95 % interval."""
    return interval([b - a for a, b in zip(before, after, strict=True)], seed=seed)
