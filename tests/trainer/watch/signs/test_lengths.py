"""Length and reward: a warning needs both the correlation and the change."""

import json
import random

import pytest

from tests.trainer.watch.signs.streams import run, scored
from trainer.watch.signs.lengths import Lengths, correlation, within_groups
from trainer.watch.signs.view import Scored


def steps(*, growth: float, weight: float) -> list[list[list[Scored]]]:
    """Twelve steps of 8 × 8; ``growth`` tokens more at each, scores follow length by ``weight``."""
    draw = random.Random(1)

    def group(base: float) -> list[Scored]:
        lengths = [max(1, round(base + draw.gauss(0, 5))) for _ in range(8)]
        return [scored(weight * (n - base) / 5 + draw.gauss(0, 1), length=n) for n in lengths]

    return [[group(40 + growth * i + 20 * k) for k in range(8)] for i in range(12)]


def test_longer_answers_that_score_better_are_seen() -> None:
    made = steps(growth=6, weight=2)
    found = run(Lengths().step, made.__getitem__)
    assert found is not None and found.code == "length_follows_reward"
    assert found.data["tokens_now"] > 1.25 * found.data["tokens_first"]
    assert 0.4 < found.data["correlation"]["low"] < found.data["correlation"]["mean"] < 1
    json.dumps(found.data, allow_nan=False)


def test_shorter_answers_that_score_better_are_seen() -> None:
    found = run(Lengths().step, steps(growth=-7, weight=-2).__getitem__)
    assert found is not None and "became shorter" in found.message


@pytest.mark.parametrize(
    ("growth", "weight"),
    [(6, 0), (0, 2), (6, -2), (-6, 2)],
    ids=["no correlation", "no growth", "longer but worse", "shorter but worse"],
)
def test_one_of_the_two_is_no_sign(growth: float, weight: float) -> None:
    assert run(Lengths().step, steps(growth=growth, weight=weight).__getitem__) is None


def test_only_differences_within_groups_count() -> None:
    # Long prompts' answers are longer and better, yet within each group it is the other way round.
    groups = [
        [scored(0.1, length=10), scored(0.0, length=12)],
        [scored(0.9, length=100), scored(0.8, length=102)],
    ]
    assert correlation(within_groups(groups)) == pytest.approx(-1.0)
    assert correlation(within_groups([[scored(1, length=3), scored(1, length=9)]])) is None
