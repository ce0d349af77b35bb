"""Counts, sums and products of observations: all that means and covariances need."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: Steps at the beginning that later ones are compared with.
FIRST_STEPS = 3
#: Steps that stand for the present.
RECENT_STEPS = 5
#: Standard errors that make a 95 % interval.
Z = 1.96


@dataclass
class Moments:
    """Sums over observations of K figures each; small enough to be kept in a checkpoint."""

    count: int = 0
    sums: list[float] = field(default_factory=list)
    products: list[list[float]] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, observations: Iterable[Sequence[float]]) -> "Moments":
        """Of ``[N, K]`` observations."""
        rows = [list(row) for row in observations]
        if not rows:
            return cls()
        table = np.asarray(rows, dtype=np.float64)
        return cls(
            len(rows),
            table.sum(axis=0).tolist(),
            (table.T @ table).tolist(),
            table.max(axis=0).tolist(),
            table.min(axis=0).tolist(),
        )

    @classmethod
    def pooled(cls, parts: Iterable["Moments"]) -> "Moments":
        """Of all observations of several."""
        known = [part for part in parts if part.count]
        if not known:
            return cls()
        return cls(
            sum(part.count for part in known),
            np.sum([part.sums for part in known], axis=0).tolist(),
            np.sum([part.products for part in known], axis=0).tolist(),
            np.max([part.highest for part in known], axis=0).tolist(),
            np.min([part.lowest for part in known], axis=0).tolist(),
        )

    @property
    def mean_K(self) -> NDArray[np.float64]:
        """The mean of each figure."""
        return np.asarray(self.sums) / self.count

    @property
    def covariance_KK(self) -> NDArray[np.float64]:
        """Covariances, over all observations as a population."""
        mean = self.mean_K
        return np.asarray(self.products) / self.count - np.outer(mean, mean)

    @property
    def error_K(self) -> NDArray[np.float64]:
        """The standard error of each mean; infinite for a single observation."""
        if self.count < 2:
            return np.full(len(self.sums), math.inf)
        variance = np.clip(np.diag(self.covariance_KK), 0.0, None)
        return np.sqrt(variance / (self.count - 1))


@dataclass
class Span:
    """The first steps of a job, and its latest ones."""

    first: list[Moments] = field(default_factory=list)
    recent: list[Moments] = field(default_factory=list)
    steps: int = 0

    def add(self, moments: Moments) -> bool:
        """Take in a step; whether first and latest steps are apart by now."""
        self.steps += 1
        if len(self.first) < FIRST_STEPS:
            self.first.append(moments)
            return False
        self.recent.append(moments)
        del self.recent[:-RECENT_STEPS]
        return len(self.recent) == RECENT_STEPS
