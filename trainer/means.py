"""Means of figures over rows or tokens that add up over parts of a batch."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Means:
    """Of each figure its total, and of how many it is."""

    totals: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def sum(cls, parts: Iterable["Means"]) -> "Means":
        """All parts together."""
        whole = cls()
        for part in parts:
            for name, total in part.totals.items():
                whole.totals[name] = whole.totals.get(name, 0.0) + total
                whole.counts[name] = whole.counts.get(name, 0) + part.counts[name]
        return whole

    def named(self, prefix: str) -> dict[str, float]:
        """The means, their names after a prefix."""
        return {f"{prefix}_{name}": self[name] for name in self.totals}

    def __getitem__(self, name: str) -> float:
        return self.totals[name] / self.counts[name]
