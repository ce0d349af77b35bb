"""One sub-score that explains the gain while another stays behind."""

import json
import random
from collections.abc import Callable

import pytest

from tests.trainer.watch.signs.streams import run, scored
from trainer.watch.signs.moments import Moments
from trainer.watch.signs.sub_scores import SubScores, fitted_weights
from trainer.watch.signs.view import Scored

Chance = Callable[[int], float]


def steps(*, exact: Chance, form: Chance) -> Callable[[int], list[list[Scored]]]:
    """Steps of 8 × 8 in which each part is met with a chance that depends on the step."""

    def made(step: int) -> list[list[Scored]]:
        draw = random.Random(step)

        def one() -> Scored:
            a = float(draw.random() < exact(step))
            b = float(draw.random() < form(step))
            return scored(0.7 * a + 0.3 * b, exact=a, form=b)

        return [[one() for _ in range(8)] for _ in range(8)]

    return made


def rising(step: int) -> float:
    return min(1.0, 0.1 + 0.08 * step)


def test_a_gain_from_the_form_alone_is_seen() -> None:
    found = run(SubScores().step, steps(exact=lambda _: 0.1, form=rising))
    assert found is not None and found.code == "one_sub_score_gains"
    exact, form = found.data["sub_scores"]
    assert (exact["name"], form["name"]) == ("exact", "form")
    assert form["share"] > 0.9 and form["now"] > form["first"] + 0.3
    assert "comes from form" in found.message and "exact" in found.message
    json.dumps(found.data, allow_nan=False)


def test_a_part_that_is_never_met_stays_behind_too() -> None:
    assert run(SubScores().step, steps(exact=lambda _: 0.0, form=rising)) is not None


@pytest.mark.parametrize(
    ("exact", "form"),
    [
        (rising, rising),
        (rising, lambda _: 1.0),
        (lambda _: 0.4, lambda _: 0.4),
    ],
    ids=["both rise", "the other has no room", "nothing rises"],
)
def test_other_gains_are_no_sign(exact: Chance, form: Chance) -> None:
    assert run(SubScores().step, steps(exact=exact, form=form)) is None


def test_one_sub_score_alone_is_never_judged() -> None:
    step = SubScores().step
    assert run(step, lambda i: [[scored(i / 12 + k / 99, only=i / 12) for k in range(9)]]) is None


def test_weights_are_those_of_a_linear_formula() -> None:
    draw = random.Random(0)
    parts = [(draw.random(), draw.random()) for _ in range(9)]
    rows = [(0.7 * a + 0.3 * b, a, b) for a, b in parts]
    assert fitted_weights(Moments.of(rows)) == pytest.approx([0.7, 0.3])
    assert fitted_weights(Moments.of([(1.0, 0.5, 0.5)] * 4)) is None
