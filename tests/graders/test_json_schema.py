"""json_schema: verdicts, partial credit, and schemas that are refused or bounded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import Failure, Score, SpecError, parse_grader, schemas, warnings
from tests.graders.examples import grade, json_schema
from tests.properties import json_values, property_test

TICKET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["product", "priority"],
    "properties": {
        "product": {"$ref": "#/$defs/product"},
        "priority": {"type": "integer", "minimum": 1},
    },
    "$defs": {"product": {"enum": ["disk", "lamp"]}},
}


def score(schema: Any, text: str, **changes: Any) -> float:
    outcome = grade(json_schema(schema, **changes), text)
    assert isinstance(outcome, Score)
    return outcome.value


@pytest.mark.parametrize(
    ("text", "whole", "partial"),
    [
        ('{"product": "disk", "priority": 1}', 1, 1),
        (' {"priority":2,"product":"lamp"}\n', 1, 1),
        ('{"product": "disk", "priority": 0}', 0, 1 / 2),
        ('{"product": "disk"}', 0, 1 / 2),
        ('{"product": "desk", "priority": "1"}', 0, 0),
        ('{"product": "disk", "priority": 1, "note": ""}', 0, 2 / 3),
        ('["disk", 1]', 0, 0),
        ("", 0, 0),
        ('{"product": "disk", "priority": 1', 0, 0),
        ('```json\n{"product": "disk", "priority": 1}\n```', 0, 0),
        ('{"product": "disk", "product": "disk", "priority": 1}', 0, 0),
        ('{"product": "disk", "priority": NaN}', 0, 0),
    ],
)
def test_verdict(text: str, whole: float, partial: float) -> None:
    assert score(TICKET, text) == whole
    assert score(TICKET, text, partial_credit=True) == pytest.approx(partial)


def test_input_can_be_another_text() -> None:
    spec = json_schema({"type": "number"}, input="{{item.n}}")
    assert grade(spec, "x", {"n": 3}) == Score(1.0)
    missing = grade(spec, "x", {})
    assert isinstance(missing, Failure)
    assert missing.kind == "invalid_variable_error"


def test_invalid_grade_scores_an_unreadable_sample_but_not_a_bad_row() -> None:
    spec = json_schema({}, input="{{sample.output_tools[0]}}", invalid_grade=0.25)
    outcome = grade(spec, "x")
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.notes[0].kind) == (0.25, "sample_variable_error")
    assert isinstance(grade({**spec, "input": "{{item.a}}"}, "x"), Failure)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "strin"}, "not valid under any of the given schemas"),
        ({"required": "a"}, "required"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "only references into"),
        ({"$ref": "other.json"}, "only references into"),
        ({"$ref": "#name"}, "only references into"),
        ({"$defs": {"a": {"items": {"$ref": "file:///etc/passwd"}}}}, "only references into"),
        ({"x": {"y": {"pattern": 5}}, "$ref": "#/x/y"}, "points to no schema; put it under"),
        ({"$ref": "#/$defs/a"}, "points to nothing"),
        ({"enum": [1], "$ref": "#/enum/0"}, "points to no schema"),
        ({"properties": {"a": {"$id": "http://a/"}}}, r"\$id is allowed at the root only"),
        ({"$dynamicRef": "#a"}, r"use \$ref"),
        ({"patternProperties": {"a": {}}}, "patternProperties is not available"),
        ({"pattern": "(?=a)"}, "not RE2"),
        ({"pattern": "(a)\\1"}, "not RE2"),
        ({"pattern": "a" * 2_001}, "may hold 2,000 characters"),
        ({"pattern": "x{0,1000}" * 200}, "too large"),
        ({"format": "phone"}, "known: date, time, date-time"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "is not known"),
        ({"$schema": 7}, "is not known"),
        ({"$ref": "#"}, "loop"),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, "loop"),
        ({"properties": {"a": {"not": {"$ref": "#/properties/a"}}}}, "loop"),
        ({"enum": ["x" * 66_000]}, "may hold 65,536 characters"),
        ({"allOf": [{}] * 1_000}, "may hold 1,000 subschemas, not 1,001"),
        ({"anyOf": [True] * 10_000}, "may hold 1,000 subschemas, not 10,001"),
    ],
)
def test_refused_schema(schema: Any, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        parse_grader(json_schema(schema))
    assert (caught.value.code, caught.value.param) == ("invalid_schema", "schema")


@pytest.mark.parametrize(
    ("schema", "ignored"),
    [
        ({"strict": True, "name": "o", "schema": {"type": "object"}}, "name, schema, strict"),
        ({"type": "object", "requird": ["a"]}, "requird"),
        ({"properties": {"a": {"type": "string", "nullable": True}}}, "nullable"),
        ({"additionalItems": False}, "additionalItems"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "minContains": 1}, "minContains"),
    ],
)
def test_keywords_that_say_nothing_are_warned_about(schema: Any, ignored: str) -> None:
    [warning] = warnings(parse_grader(json_schema(schema)))
    assert f"which say nothing here: {ignored}." in warning


@pytest.mark.parametrize(
    "schema",
    [
        {"$comment": "x", "title": "x", "default": 1, "examples": [{"foo": 1}], "x-ours": 1},
        {"if": {}, "then": {}, "else": {}, "contains": {}, "minContains": 1, "$defs": {"foo": {}}},
        {"properties": {"foo": {"const": {"bar": 1}}}, "required": ["foo"], "$anchor": "a"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "additionalItems": False},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "unevaluatedItems": False},
    ],
)
def test_known_keywords_are_not_warned_about(schema: Any) -> None:
    assert warnings(parse_grader(json_schema(schema))) == []


def test_chained_references_are_bounded() -> None:
    definitions = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(500)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**definitions, "a500": {}}}
    with pytest.raises(SpecError, match="chained more than"):
        parse_grader(json_schema(schema))


def test_partial_credit_needs_required_properties() -> None:
    with pytest.raises(SpecError, match="required") as caught:
        parse_grader(json_schema({"type": "object"}, partial_credit=True))
    assert caught.value.param == "partial_credit"


def test_annotations_that_look_like_references_are_left_alone() -> None:
    schema = {"properties": {"$ref": {"const": {"$ref": "http://a/"}}}, "default": {"$ref": "x"}}
    assert score(schema, '{"$ref": {"$ref": "http://a/"}}') == 1
    assert score(schema, '{"$ref": 1}') == 0


def test_recursive_schema_follows_the_text_to_its_end() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["v"]}
    assert score(tree, '{"v":1,"next":{"v":2,"next":{"v":3}}}') == 1
    assert score(tree, '{"v":1,"next":{"v":2,"next":{}}}') == 0


def test_draft_7_is_understood() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": "integer"}},
        "items": [{"$ref": "#/definitions/a"}],
    }
    assert score(schema, "[1]") == 1
    assert score(schema, '["1"]') == 0


def test_exponential_pattern_is_linear_here() -> None:
    assert score({"pattern": "^(a+)+$"}, '"' + "a" * 50_000 + 'b"') == 0


def test_exponential_schema_spends_its_budget() -> None:
    definitions = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 3} for i in range(12)}
    tripling = {"$ref": "#/$defs/a0", "$defs": {**definitions, "a12": {}}}
    outcome = grade(json_schema(tripling), "1")
    assert isinstance(outcome, Failure)
    assert outcome.kind == "other_error"
    assert f"{schemas.MAX_STEPS:,} steps" in outcome.detail


def test_budget_is_refilled_for_every_text() -> None:
    schema = schemas.Schema({"items": {"type": "integer"}})
    numbers = [1] * (schemas.MAX_STEPS // 2)
    assert all(schema.accepts(numbers, chars=10) for _ in range(3))


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", [1], {"a": 1}, None], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ([[1, [2]], [1, [2]]], False),
        ([[], {}, "", 0, False], True),
    ],
)
def test_unique_items(items: list[Any], unique: bool) -> None:
    assert schemas.Schema({"uniqueItems": True}).accepts(items, chars=1) is unique
    assert schemas.Schema({"uniqueItems": False}).accepts(items, chars=1)


SCHEMAS = st.recursive(
    st.dictionaries(
        st.sampled_from(["type", "enum", "const", "minimum", "multipleOf", "pattern", "format"]),
        st.sampled_from(["integer", "object", "date", [1], 0.1, 1e-300, "(a", "^a"]) | json_values,
        max_size=2,
    )
    | st.sampled_from([True, {"$ref": "#"}, {"$ref": "#/properties/a"}, {"$id": "x"}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.fixed_dictionaries({}, optional={"a": inner, "b": inner}),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "items": inner,
            "not": inner,
            "unevaluatedProperties": inner,
            "required": st.just(["a"]),
            "uniqueItems": st.booleans(),
        },
    ),
    max_leaves=6,
)


@property_test
@given(schema=SCHEMAS | json_values, text=json_values.map(repr) | st.just('{"a":[1e300,"a"]}'))
def test_only_spec_errors_and_outcomes(schema: Any, text: str) -> None:
    try:
        spec = parse_grader(json_schema(schema))
    except SpecError:
        return
    assert isinstance(grade(spec, text), Score | Failure)


def test_a_schema_says_what_is_most_wrong() -> None:
    schema = schemas.Schema(
        {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {"type": "object", "required": ["c"]}},
        }
    )
    assert schema.problem({"a": {"c": 1}, "b": 2}, chars=20) is None
    assert schema.problem({"a": {"c": 1}}, chars=10) == ("$", "'b' is required")
    assert schema.problem({"a": {}, "b": 1}, chars=10) == ("$.a", "'c' is required")
    found = schema.problem([], chars=2)
    assert found is not None
    assert found[0] == "$"
