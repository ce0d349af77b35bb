"""Rankings: how candidates are shown to a judge, and what several rankings come to."""

import hashlib
import itertools
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeAlias

#: Places of the candidates, by their index: 0 is the best, equals share a place.
Places: TypeAlias = "Sequence[int]"

#: Letters of ids: none that spells a word or says something about a rank.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def shown(candidates: Sequence[str], vote: int) -> dict[str, int]:
    """An opaque id for each candidate, in the order to show them; values are their indexes.

    The order depends on the texts and the number of the vote alone. Every second vote shows the
    order of the one before it backwards, so that what a judge gives to a position it takes back.
    """
    digest = hashlib.sha256("\0".join(candidates).encode("utf-8", "surrogatepass")).hexdigest()
    order = list(range(len(candidates)))
    random.Random(f"{digest}:{vote // 2}").shuffle(order)
    if vote % 2:
        order.reverse()
    chooser = random.Random(f"{digest}:{vote}:ids")
    ids: dict[str, None] = {}
    while len(ids) < len(order):
        ids["".join(chooser.choices(_LETTERS, k=4))] = None
    return dict(zip(ids, order, strict=True))


def scores(places: Places) -> list[float]:
    """For each candidate the share of the others that it beats; an equal counts half."""
    others = len(places) - 1
    return [
        (sum(p > mine for p in places) + 0.5 * (sum(p == mine for p in places) - 1)) / others
        for mine in places
    ]


def median_scores(votes: Sequence[Places]) -> list[float]:
    """The median over the votes of each candidate's score."""
    return [statistics.median(each) for each in zip(*map(scores, votes), strict=True)]


def agreement(votes: Sequence[Places]) -> float | None:
    """Mean Kendall tau-b over all pairs of votes, from -1 to 1; None for a single vote."""
    taus = [tau_b(one, other) for one, other in itertools.combinations(votes, 2)]
    return statistics.fmean(taus) if taus else None


def tau_b(one: Places, other: Places) -> float:
    """Kendall's tau-b; a vote that calls all equal agrees with its like only."""
    concordance, untied_one, untied_other = 0, 0, 0
    for (a, b), (c, d) in zip(
        itertools.combinations(one, 2), itertools.combinations(other, 2), strict=True
    ):
        first, second = (a > b) - (a < b), (c > d) - (c < d)
        concordance += first * second
        untied_one += first != 0
        untied_other += second != 0
    if not untied_one or not untied_other:
        return float(untied_one == untied_other)
    return float(concordance / (untied_one * untied_other) ** 0.5)


def places_of(tiers: Sequence[Sequence[str]], ids: Mapping[str, int]) -> list[int]:
    """The places that a judge's tiers of ids, best first, give to the candidates.

    Raises `ValueError` with a clause when an id is unknown, missing or named twice.
    """
    named = [name for tier in tiers for name in tier]
    unknown = [name for name in named if name not in ids]
    missing = [name for name in ids if name not in named]
    if unknown:
        raise ValueError(f"the ranking names {unknown[0]!r}, which is no id of a candidate")
    if missing:
        raise ValueError(f"the ranking lacks {missing[0]!r}")
    if len(named) != len(ids):
        raise ValueError("the ranking names a candidate twice")
    places = [0] * len(ids)
    for place, tier in enumerate(tier for tier in tiers if tier):
        for name in tier:
            places[ids[name]] = place
    return places
