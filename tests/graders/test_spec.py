"""Reading grader JSON: what is refused, how it is said, what is echoed."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import GRADERS, SpecError, check_rows, item_of, parse_grader, variables
from graders.spec import MAX_CHARS
from tests.graders.examples import json_schema, multi, string_check
from tests.graders.judging import score_model
from tests.properties import json_values, property_test


@pytest.mark.parametrize(
    "spec",
    [
        string_check(),
        string_check(pass_threshold=0.5, invalid_grade=0),
        json_schema({"type": "object"}, partial_credit=False),
        multi({"a": string_check(), "b": json_schema({"type": "object"})}, "a + b"),
    ],
)
def test_echo_is_what_was_given(spec: dict[str, Any]) -> None:
    assert parse_grader(spec).wire() == spec
    assert parse_grader(parse_grader(spec).wire()) == parse_grader(spec)


@pytest.mark.parametrize(
    ("raw", "param", "reason"),
    [
        (None, "", "must be an object"),
        ([], "", "must be an object"),
        ({}, "type", "known types: string_check"),
        ({"type": ["multi"]}, "type", "known types"),
        ({"type": "magic", "name": "g"}, "type", "Unknown grader type 'magic'"),
        ({**string_check(), "nmae": "x"}, "nmae", "did you mean 'name'"),
        ({**string_check(), "zzz": "x"}, "zzz", "known fields: type, name"),
        ({k: v for k, v in string_check().items() if k != "name"}, "name", "required"),
        (string_check(name=""), "name", "at least 1 character"),
        (string_check(reference=5), "reference", "be a text"),
        (string_check(reference=None), "reference", "required"),
        (string_check(type=None), "type", "Unknown grader type None"),
        (string_check(invalid_grade="0"), "invalid_grade", "be a number"),
        (string_check(invalid_grade=True), "invalid_grade", "be a number"),
        (string_check(reference="{{item.a"), "reference", "never closed"),
        (score_model(range=[1, 0]), "range", "^range: The lower bound 1 must be below the upper 0"),
        (json_schema({"type": "object"}, schema_={}), "schema_", "Unknown field"),
        (string_check(invalid_grade=math.inf), "", "not usable JSON"),
        (string_check(reference="\ud800"), "", "not usable JSON"),
        (string_check(reference=b"x"), "", "not usable JSON"),
        (string_check(name="x" * MAX_CHARS), "", "may hold"),
    ],
)
def test_refused(raw: Any, param: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        parse_grader(raw)
    assert caught.value.param == param


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader({"type": "string_check", "operatoin": "eq", "input": "{{x}}", "name": "g"})
    assert [problem.param for problem in caught.value.problems] == [
        "input",
        "reference",
        "operation",
        "operatoin",
    ]
    assert str(caught.value).startswith("input: Variable 'x' must start with")
    assert "operatoin: Unknown field; did you mean 'operation'?" in str(caught.value)


def test_deep_grader_is_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(SpecError, match="not usable JSON"):
        parse_grader(json_schema(deep))


def test_variables() -> None:
    spec = multi({"a": string_check(), "b": json_schema({"type": "object"})}, "a + b")
    assert {str(path) for path in variables(parse_grader(spec))} == {
        "item.answer",
        "sample.output_text",
    }


def test_item_is_the_row_without_its_conversation() -> None:
    assert item_of({"messages": [], "tools": [], "a": 1, "input": 2}) == {"a": 1, "input": 2}


def test_good_rows_have_no_problems_and_none_has_the_conversation() -> None:
    spec = parse_grader(string_check(input="{{item.messages[0].content}}"))
    row = {"messages": [{"content": "x"}], "answer": None}
    [problem] = check_rows(spec, iter([row]))
    assert problem.path == "item.messages[0].content"
    assert check_rows(parse_grader(string_check()), [row]) == []


FIELDS = [
    "type",
    "name",
    "input",
    "reference",
    "operation",
    "graders",
    "calculate_output",
    "schema",
]
VALUES = json_values | st.sampled_from([*GRADERS, "eq", "a", "{{item.a}}", string_check()])


@property_test
@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES)
    | json_values
    | st.dictionaries(st.sampled_from("ab"), VALUES).map(lambda graders: multi(graders, "a"))
    | json_values.map(lambda value: string_check(operation=value, input=value))
)
def test_only_spec_errors(raw: Any) -> None:
    try:
        spec = parse_grader(raw)
    except SpecError as error:
        str(error).encode()
    else:
        assert parse_grader(spec.wire()).wire() == spec.wire()
