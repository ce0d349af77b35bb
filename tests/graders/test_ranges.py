"""Scores outside of their range: failed or clipped, never changed silently."""

import math

import pytest
from pydantic import TypeAdapter, ValidationError

from graders.errors import GradeError
from graders.outcome import Note, Score
from graders.ranges import Bounds, RangePolicy, in_range


@pytest.mark.parametrize("value", [0, 0.5, 1.0])
@pytest.mark.parametrize("policy", ["fail", "clip"])
def test_inside_nothing_happens(value: float, policy: RangePolicy) -> None:
    assert in_range(value, [0, 1], policy, grader="g", kind="other_error") == Score(value)
    assert in_range(value, None, policy, grader="g", kind="other_error") == Score(value)


def test_fail_names_score_and_range() -> None:
    with pytest.raises(GradeError, match=r"score 7 is out of range \[0, 1\]") as caught:
        in_range(7, [0, 1], "fail", grader="g", kind="model_grader_parse_error")
    assert caught.value.kind == "model_grader_parse_error"


@pytest.mark.parametrize(("value", "clipped"), [(7, 1.0), (-1e300, 0.0)])
def test_clip_takes_the_nearest_bound_and_says_so(value: float, clipped: float) -> None:
    score = in_range(value, [0, 1], "clip", grader="g", kind="other_error")
    detail = f"The score {value:g} is out of range [0, 1]; taken as {clipped:g}."
    assert score == Score(clipped, notes=(Note("g", "other_error", detail),))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_no_policy_makes_a_score_of_what_is_none(value: float) -> None:
    with pytest.raises(GradeError) as caught:
        in_range(value, [0, 1], "clip", grader="g", kind="other_error")
    assert caught.value.kind == "non_finite_reward"


@pytest.mark.parametrize("bounds", [[0], [0, 1, 2], [1, 0], [1, 1], [0, math.inf], ["0", "1"]])
def test_bounds_that_are_none(bounds: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Bounds).validate_python(bounds, strict=True)
