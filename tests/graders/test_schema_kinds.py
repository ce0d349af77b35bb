"""References in schemas, in many forms: none leaves the schema."""

import json
import socket
from typing import Any

import pytest

from graders import Score, SpecError, parse_grader
from tests.graders.examples import grade, json_schema

REMOTE = "http://169.254.169.254/latest/meta-data"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reaching out is an error."""

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("somebody reached out")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "reference",
    [
        *(REMOTE, REMOTE + "#", REMOTE + "#/$defs/a", "https://json-schema.org/draft/2020-12/schema"),
        *("file:///etc/passwd", "FILE:///etc/passwd", "ftp://h/x", "urn:uuid:0-0", "data:,{}"),
        *("//169.254.169.254/x", "/etc/passwd", "other.json", "./a", "../a", "a#/b", "?q", " #"),
        *("#a", "#/missing", "#/$defs/none", "#/properties/a/0", "#//", "\\\\host\\x", ""),
        *("http://example.com/root", "http://example.com/root#/$defs/ok", "javascript:1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_no_reference_leaves_the_schema(reference: str, keyword: str) -> None:
    held = {keyword: reference}
    for schema in (
        held,
        {"properties": {"a": held}},
        {"$defs": {"ok": {}, "unused": held}},
        {"definitions": {"unused": held}},
        {"items": held},
        {"prefixItems": [{}, held]},
        {"anyOf": [{}, {"not": held}]},
        {"if": held},
        {"dependentSchemas": {"a": held}},
        {"additionalProperties": held},
        {"unevaluatedItems": held},
        {"propertyNames": held},
        {"contains": held},
        {"contentSchema": held},
        {"$id": "http://example.com/root", "$defs": {"ok": {}}, "not": held},
    ):
        _refused(schema)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$id": REMOTE}},
        {"$defs": {"a": {"$id": "a"}}, "$ref": "#/$defs/a"},
        {"$id": REMOTE, "items": {"$id": "b", "$ref": "#/$defs/a"}},
        {"$schema": REMOTE},
        {"$schema": "http://json-schema.org/schema#"},
        {"$schema": "file:///etc/passwd"},
        {"items": {"$schema": REMOTE}},
        {"items": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        {"$ref": 5},
        {"$ref": None},
        {"$ref": ["#"]},
        {"$ref": {"$ref": "#"}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "dependencies": {"a": {"$ref": REMOTE}},
        },
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"$ref": REMOTE}]},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"},
    ],
)
def test_no_other_keyword_leaves_the_schema(schema: dict[str, Any]) -> None:
    _refused(schema)


@pytest.mark.parametrize("value", [None, True, 5, "x", [], [{}], {}, {"a": {}}])
@pytest.mark.parametrize(
    ("keyword", "right"),
    [
        *((name, dict) for name in ("properties", "$defs", "definitions")),
        *((name, dict) for name in ("dependentSchemas", "dependencies")),
        *((name, list) for name in ("allOf", "anyOf", "oneOf", "prefixItems")),
    ],
)
def test_keyword_that_holds_no_schemas(keyword: str, right: type, value: Any) -> None:
    ill = {keyword: value}
    if not isinstance(value, right):
        _refused(ill)
        _refused({"items": ill})
    # What is next to it is still looked through.
    _refused({**ill, "not": {"$ref": REMOTE}})


def _refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader(json_schema(schema))
    assert (caught.value.code, caught.value.param) == ("invalid_schema", "schema"), schema


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 1, "1"),
        ({"$ref": "#/%24defs/a", "$defs": {"a": {"type": "integer"}}}, 1, "1"),
        ({"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "integer"}}}, 1, "1"),
        ({"$id": REMOTE, "$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 1, "1"),
        ({"items": {"$ref": "#"}, "type": "array"}, [[[]]], [[1]]),
        ({"const": {"$ref": REMOTE}}, {"$ref": REMOTE}, {"$ref": "#"}),
        ({"enum": [{"$ref": REMOTE}]}, {"$ref": REMOTE}, 1),
        ({"default": {"$ref": REMOTE}, "examples": [{"$id": REMOTE}], "type": "null"}, None, 1),
        ({"properties": {"$ref": {"type": "integer"}}}, {"$ref": 1}, {"$ref": REMOTE}),
        ({"properties": {"$schema": {"type": "integer"}}}, {"$schema": 1}, {"$schema": REMOTE}),
        ({"$comment": REMOTE, "title": REMOTE, "type": "null"}, None, 1),
    ],
)
def test_references_within_the_schema_are_followed(
    schema: dict[str, Any], valid: Any, invalid: Any
) -> None:
    assert grade(json_schema(schema), json.dumps(valid)) == Score(1.0)
    assert grade(json_schema(schema), json.dumps(invalid)) == Score(0.0)
