"""Rankings: how candidates are shown, and what several votes come to."""

import itertools
import random

import pytest

from graders import rankings

TEXTS = ["a", "b", "c", "d", "e"]


def test_every_vote_shows_all_candidates_under_ids_of_its_own() -> None:
    shows = [rankings.shown(TEXTS, vote) for vote in range(6)]
    for ids in shows:
        assert sorted(ids.values()) == [0, 1, 2, 3, 4]
        assert all(len(name) == 4 and name.isupper() for name in ids)
    assert len(set(itertools.chain(*shows))) == 6 * 5
    orders = [list(ids.values()) for ids in shows]
    assert [orders[1], orders[3]] == [orders[0][::-1], orders[2][::-1]]
    assert orders[0] != orders[2]


def test_order_follows_from_the_texts_alone() -> None:
    assert rankings.shown(TEXTS, 0) == rankings.shown(list(TEXTS), 0)
    orders = {tuple(rankings.shown([*TEXTS, str(n)], 0).values()) for n in range(20)}
    assert len(orders) > 10


@pytest.mark.parametrize(
    ("places", "scores"),
    [
        ([0, 1], [1, 0]),
        ([0, 0], [0.5, 0.5]),
        ([2, 0, 1], [0, 1, 0.5]),
        ([0, 0, 1, 1], [5 / 6, 5 / 6, 1 / 6, 1 / 6]),
        ([0, 1, 1, 2], [1, 0.5, 0.5, 0]),
    ],
)
def test_scores_are_shares_of_the_others_beaten(places: list[int], scores: list[float]) -> None:
    assert rankings.scores(places) == pytest.approx(scores)
    assert sum(rankings.scores(places)) == pytest.approx(len(places) / 2)


def test_median_resists_one_wild_vote() -> None:
    assert rankings.median_scores([[0, 1, 2], [0, 1, 2], [2, 1, 0]]) == [1, 0.5, 0]
    assert rankings.median_scores([[0, 1], [1, 0]]) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ([0, 1, 2], [0, 1, 2], 1),
        ([0, 1, 2], [2, 1, 0], -1),
        ([0, 0, 0], [0, 0, 0], 1),
        ([0, 0, 0], [0, 1, 2], 0),
        # By hand: 5 pairs agree, one is tied in the first; sqrt(5 * 6) in the denominator.
        ([0, 1, 2, 2], [0, 1, 2, 3], 5 / 30**0.5),
        ([0, 0, 1], [0, 1, 1], 1 / 2),
    ],
)
def test_tau_b(one: list[int], other: list[int], tau: float) -> None:
    assert rankings.tau_b(one, other) == pytest.approx(tau)
    assert rankings.tau_b(other, one) == pytest.approx(tau)


def test_agreement_is_the_mean_over_pairs_of_votes() -> None:
    assert rankings.agreement([[0, 1, 2]]) is None
    assert rankings.agreement([[0, 1, 2], [0, 1, 2], [2, 1, 0]]) == pytest.approx((1 - 1 - 1) / 3)
    chance = random.Random(0)
    votes = [chance.sample(range(30), 30) for _ in range(9)]
    assert abs(rankings.agreement(votes) or 1) < 0.1


IDS = {"X": 2, "Y": 0, "Z": 1}


def test_places_go_by_id() -> None:
    assert rankings.places_of([["Z"], ["X", "Y"]], IDS) == [1, 0, 1]
    assert rankings.places_of([[], ["Z"], [], ["X"], ["Y"]], IDS) == [2, 0, 1]


@pytest.mark.parametrize(
    ("tiers", "reason"),
    [
        ([["X"], ["Y"]], "lacks 'Z'"),
        ([["X"], ["Y"], ["Z"], ["Q"]], "'Q', which is no id"),
        ([["X"], ["Y"], ["Z"], ["X"]], "twice"),
        ([["X", "X"], ["Y"], ["Z"]], "twice"),
        ([["x"], ["Y"], ["Z"]], "'x', which is no id"),
        ([], "lacks 'X'"),
    ],
)
def test_rankings_that_are_none(tiers: list[list[str]], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rankings.places_of(tiers, IDS)
