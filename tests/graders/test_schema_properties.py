"""JSON Schemas of any kind: an answer or an error of ours, within a second."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graders.examples import json_schema
from tests.graders.hostile import graded, hostile
from tests.properties import json_values, property_test

_KEYWORDS = (
    *("type", "enum", "const", "minimum", "multipleOf", "pattern", "format", "required", "x"),
    *("$ref", "$dynamicRef", "$id", "$anchor", "$schema", "minLength", "maxItems"),
)
_VALUES = (
    *("integer", "object", "date", "email", "#", "#/$defs/a", "#a", "other.json", "//host/x"),
    *([1], [True], 0.1, 1e-300, 10**300, "(a+)+$", "^a", ["a", "b"]),
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
)
#: Keywords whose value is one schema.
_WITH_ONE = (
    *("items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_LEAVES = st.dictionaries(
    st.sampled_from(_KEYWORDS), st.sampled_from(_VALUES) | json_values, max_size=3
)
_SCHEMAS = st.recursive(
    _LEAVES | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **{k: st.dictionaries(st.sampled_from("ab"), inner) for k in ("properties", "$defs")},
            **{k: st.lists(inner, min_size=1, max_size=3) for k in ("allOf", "anyOf", "oneOf")},
            **dict.fromkeys(_WITH_ONE, inner),
            "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner),
            "dependencies": st.dictionaries(st.sampled_from("ab"), inner | st.just(["a"])),
            "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/allOf/0"]),
            "uniqueItems": st.booleans(),
        },
    ),
    max_leaves=10,
)
_TEXTS = (
    json_values.map(lambda value: json.dumps(value, allow_nan=True))
    | hostile
    | st.sampled_from(['{"a":{"a":[1,"aaa"]},"b":null}', "[[1,1],[1,1.0],true]", '"aaaa"'])
)


@settings(property_test, max_examples=150)
@given(schema=_SCHEMAS, text=_TEXTS, partial=st.booleans())
def test_json_schemas(schema: Any, text: str, *, partial: bool) -> None:
    graded(json_schema(schema, partial_credit=partial), text)


def _many(count: int) -> str:
    return json.dumps([{} for _ in range(count)], separators=(",", ":"))


def _doubling(keyword: str, depth: int) -> dict[str, Any]:
    """A schema that applies 2 ** depth subschemas to one value."""

    def both(number: int) -> Any:
        reference = {"$ref": f"#/$defs/d{number}"}
        named = keyword in ("dependentSchemas", "dependencies")
        return {keyword: {"a": reference, "b": reference} if named else [reference, reference]}

    definitions = {f"d{i}": both(i + 1) for i in range(depth)}
    return {**both(0), "$defs": {**definitions, f"d{depth}": {}}}


BIG = json.dumps({f"k{i}": 0 for i in range(70_000)}, separators=(",", ":"))
ONES = json.dumps([1] * 400_000, separators=(",", ":"))
PAIR = '{"a": 1, "b": 2}'
LONG = json.dumps("x" * 990_000)
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        # A dialect named below the root would bring in Python's own regular expressions.
        ({"items": {"$schema": DRAFT_7, "pattern": "^(a+)+$"}}, json.dumps(["a" * 40 + "b"])),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "^(a+)+$"}}}, json.dumps("a" * 40 + "b")),
        (
            {"$schema": DRAFT_7, "pattern": "^(a+)+$", "items": {"$ref": "#"}},
            json.dumps(["a" * 40 + "b"]),
        ),
        ({"type": [x for i in range(2_500) for x in (i, f"a{i}", [i])]}, "1"),
        ({"enum": [x for i in range(2_500) for x in (i, f"a{i}", [i])]}, "[2500]"),
        ({"properties": {f"p{i}": 5 for i in range(5_000)}}, "{}"),
        ({"properties": {f"p{i}": {} for i in range(5_000)}}, "{}"),
        ({"items": {"enum": list(range(10_000))}}, json.dumps([9_999] * 15_000)),
        ({"items": {"anyOf": [{"required": [f"a{i}" for i in range(6_000)]}, {}]}}, _many(15_000)),
        ({"items": {"properties": {f"a{i}": {} for i in range(900)}}}, _many(15_000)),
        ({"unevaluatedProperties": False, "additionalProperties": True}, BIG),
        ({"anyOf": [{"additionalProperties": False}] * 500}, BIG),
        ({"anyOf": [{"minItems": 10**9}] * 900}, ONES),
        ({"unevaluatedItems": False, "contains": {}}, ONES),
        ({"anyOf": [{"contains": {"type": "string"}}] * 100}, ONES),
        ({"anyOf": [{"uniqueItems": True, "minItems": 10**9}] * 100}, ONES),
        ({"anyOf": [{"pattern": f"(x{{0,200}}y){{3}}z{i}"} for i in range(90)]}, LONG),
        ({"anyOf": [{"pattern": "x{0,1000}" * 9 + str(i)} for i in range(600)]}, LONG),
        ({"anyOf": [{"pattern": "x{0,1000}" * 9 + "y"}] * 600}, LONG),
        ({"anyOf": [{"enum": [[1]]}] * 900}, ONES),
        ({**_doubling("dependentSchemas", 25), "unevaluatedProperties": False}, PAIR),
        (_doubling("dependentSchemas", 25), PAIR),
        (_doubling("allOf", 25), PAIR),
        ({**_doubling("anyOf", 25), "unevaluatedProperties": False}, PAIR),
        ({**_doubling("oneOf", 12), "unevaluatedItems": False}, "[1, 2]"),
        ({"$schema": DRAFT_7, "dependencies": {"a": {"$ref": "#"}}}, PAIR),
        ({"multipleOf": 5e-324}, "9" * 308),
        ({"multipleOf": 0.1}, "1e308"),
    ],
)  # fmt: skip
def test_schemas_that_could_stall(schema: dict[str, Any], text: str) -> None:
    graded(json_schema(schema), text)
