"""string_check: OpenAI's operations, exactly."""

import pytest

from graders import Score, SpecError, parse_grader
from tests.graders.examples import grade, string_check


@pytest.mark.parametrize(
    ("operation", "text", "reference", "score"),
    [
        ("eq", "Paris", "Paris", 1),
        ("eq", "Paris", "paris", 0),
        ("eq", "Paris ", "Paris", 0),
        ("eq", "", "", 1),
        ("ne", "Paris", "paris", 1),
        ("ne", "Paris", "Paris", 0),
        ("neq", "Paris", "Rome", 1),
        ("like", "in Paris now", "Paris", 1),
        ("like", "in Paris now", "paris", 0),
        ("like", "Paris", "in Paris now", 0),
        ("like", "Paris", "P%s", 0),
        ("like", "Paris", "", 1),
        ("ilike", "in PARIS now", "paris", 1),
        ("ilike", "STRASSE", "straße", 1),
        ("ilike", "Rome", "paris", 0),
        ("ilike", "İzmir", "i̇zmir", 1),
        ("ilike", "İzmir", "izmir", 0),
        ("ilike", "ISPARTA", "ısparta", 0),
        ("ilike", "ΟΔΟΣ", "οδος", 1),
    ],
)
def test_operation(operation: str, text: str, reference: str, score: float) -> None:
    spec = string_check(operation=operation)
    assert grade(spec, text, {"answer": reference}) == Score(score)


def test_neq_is_shown_as_ne() -> None:
    assert parse_grader(string_check(operation="neq")).wire() == string_check(operation="ne")


@pytest.mark.parametrize("operation", ["EQ", "equals", "", ["eq"], True])
def test_other_operations_are_refused(operation: object) -> None:
    with pytest.raises(SpecError, match="'eq', 'ne', 'like' or 'ilike'") as caught:
        parse_grader(string_check(operation=operation))
    assert caught.value.param == "operation"
