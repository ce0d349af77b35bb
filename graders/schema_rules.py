"""Which JSON Schemas of users are refused: those that could reach out, loop or promise too much.

Only references into the document itself are followed (`#` and `#/…`); a chain of references and
combinations that applies to one and the same value must end.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import jsonschema
from jsonschema import FormatChecker
from referencing.jsonschema import specification_with

from graders import jsontext
from graders.formats import FORMATS
from graders.patterns import Pattern, PatternError

#: Largest schema, in characters of JSON.
MAX_CHARS = 65_536
#: Longest chain of references and combinations that apply to one and the same value.
MAX_CHAIN = 30

LATEST = "https://json-schema.org/draft/2020-12/schema"
#: The validator classes of the dialects that `$schema` may name.
DIALECTS: dict[str, Any] = {
    LATEST: jsonschema.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
}

_REFUSED = {
    "patternProperties": "list the properties, or use additionalProperties",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
}
_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_SAME_VALUE = ("not", "if", "then", "else")


class SchemaError(ValueError):
    """The schema is refused; the message says why, without a final full stop."""


def _dialect(document: Mapping[str, Any]) -> str:
    given = document.get("$schema", LATEST)
    dialect = given.rstrip("#") if isinstance(given, str) else given
    if dialect not in DIALECTS:
        raise SchemaError(f"$schema {given!r} is not known; known: {', '.join(DIALECTS)}")
    return str(dialect)


def check_schema(document: Mapping[str, Any]) -> str:
    """Check a schema and return its dialect, a key of `DIALECTS`; raises `SchemaError`."""
    dialect = _dialect(document)
    size = len(jsontext.dumps(document))
    if size > MAX_CHARS:
        raise SchemaError(f"a schema may hold {MAX_CHARS:,} characters, not {size:,}")
    try:
        # Without formats: "regex" would ask Python's engine, and ours is another one.
        DIALECTS[dialect].check_schema(document, format_checker=FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        raise SchemaError(f"{error.json_path}: {_short(error.message)}") from error
    except RecursionError as error:
        raise SchemaError("the schema is nested too deeply") from error
    nodes = _nodes(document, dialect)
    for node in nodes.values():
        _check_node(node, is_root=node is document)
        if "$ref" in node:
            _check_reference(document, node["$ref"], nodes)
    _check_chains(document, list(nodes.values()))
    return dialect


def _nodes(document: Mapping[str, Any], dialect: str) -> dict[int, Mapping[str, Any]]:
    """Every subschema by its identity."""
    specification = specification_with(dialect)
    nodes: dict[int, Mapping[str, Any]] = {}
    waiting: list[Any] = [document]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping) or id(node) in nodes:
            continue
        nodes[id(node)] = node
        waiting.extend(specification.subresources_of(node))
    return nodes


def _check_node(node: Mapping[str, Any], *, is_root: bool) -> None:
    for keyword, instead in _REFUSED.items():
        if keyword in node:
            raise SchemaError(f"the keyword {keyword} is not available; {instead}")
    if "$id" in node and not is_root:
        raise SchemaError("the keyword $id is allowed at the root only")
    if "format" in node and node["format"] not in FORMATS:
        raise SchemaError(f"format {node['format']!r} is not known; known: {', '.join(FORMATS)}")
    if "pattern" in node:
        try:
            Pattern(node["pattern"])
        except PatternError as error:
            raise SchemaError(str(error)) from error


def _check_reference(
    document: Mapping[str, Any], reference: str, nodes: Mapping[int, Mapping[str, Any]]
) -> None:
    # What stands outside the known subschemas was not checked as a schema.
    target = _target(document, reference)
    if not isinstance(target, bool) and id(target) not in nodes:
        raise SchemaError(
            f"$ref {_short(reference)!r} points to no schema; put it under $defs and refer to that"
        )


def _target(document: Mapping[str, Any], reference: str) -> Any:
    """Find what an in-document reference points to; raises `SchemaError` for any other."""
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaError(
            f"$ref {_short(reference)!r} is not allowed; only references into the schema itself, "
            "as in '#/$defs/name', are followed"
        )
    node: Any = document
    for part in unquote(reference).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise SchemaError(f"$ref {_short(reference)!r} points to nothing in the schema")
    return node


def _check_chains(document: Mapping[str, Any], nodes: list[Mapping[str, Any]]) -> None:
    """Refuse schemas that apply to one value without end, as `{"$ref": "#"}` does."""
    heights: dict[int, int] = {}

    def height(node: Any, above: int) -> int:
        if not isinstance(node, Mapping):
            return 0
        if above + heights.get(id(node), 0) > MAX_CHAIN:
            raise SchemaError(
                f"references and combinations loop, or are chained more than {MAX_CHAIN} deep"
            )
        if id(node) not in heights:
            below = [height(part, above + 1) for part in _same_value_parts(document, node)]
            heights[id(node)] = 1 + max(below, default=0)
        return heights[id(node)]

    for node in nodes:
        height(node, 0)


def _same_value_parts(document: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(node.get("$ref"), str):
        yield _target(document, node["$ref"])
    for keyword in _COMBINATIONS:
        branches = node.get(keyword)
        yield from branches if isinstance(branches, list) else ()
    yield from (node[keyword] for keyword in _SAME_VALUE if keyword in node)
    dependent = node.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, Mapping) else ()


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}…"
