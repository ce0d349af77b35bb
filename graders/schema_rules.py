"""Which JSON Schemas of users are refused: those that could reach out, loop or promise too much.

Only references into the document itself are followed (`#` and `#/…`); a chain of references and
combinations that applies to one and the same value must end.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import jsonschema
from jsonschema import validators
from jsonschema.protocols import Validator
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import specification_with

from graders import jsontext
from graders.formats import FORMATS
from graders.patterns import Pattern, PatternError
from graders.schema_keywords import unique_items

#: Largest schema, in characters of JSON.
MAX_CHARS = 65_536
#: Most subschemas, the schema itself included.
MAX_SUBSCHEMAS = 1_000
#: Instructions of all patterns together; compiling takes up to 5 µs for each.
MAX_PATTERN_SIZE = 30_000
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


def dialect_of(document: Mapping[str, Any]) -> str:
    """The key of `DIALECTS` that `$schema` names; raises `SchemaError`."""
    given = document.get("$schema", LATEST)
    dialect = given.rstrip("#") if isinstance(given, str) else ""
    if dialect not in DIALECTS:
        raise SchemaError(f"$schema {given!r} is not known; known: {', '.join(DIALECTS)}")
    return dialect


def check_schema(document: Mapping[str, Any]) -> str:
    """Check a schema and return its dialect, a key of `DIALECTS`; raises `SchemaError`."""
    dialect = dialect_of(document)
    size = len(jsontext.dumps(document))
    if size > MAX_CHARS:
        raise SchemaError(f"a schema may hold {MAX_CHARS:,} characters, not {size:,}")
    nodes = _nodes(document, dialect)
    try:
        error = next(_metaschema(dialect).iter_errors(document), None)
    except RecursionError as error:
        raise SchemaError("the schema is nested too deeply") from error
    if error is not None:
        raise SchemaError(f"{error.json_path}: {_short(error.message)}")
    for node in nodes.values():
        _check_node(node, is_root=node is document)
        if "$ref" in node:
            _check_reference(document, node["$ref"], nodes)
    _check_patterns(list(nodes.values()))
    _check_chains(document, list(nodes.values()))
    return dialect


def ignored_keywords(document: Mapping[str, Any]) -> list[str]:
    """The keywords of a checked schema that its dialect does not have, but for `x-…`."""
    dialect = dialect_of(document)
    used = {keyword for node in _nodes(document, dialect).values() for keyword in node}
    return sorted(k for k in used - _keywords(dialect) if not k.startswith("x-"))


@functools.cache
def _keywords(dialect: str) -> frozenset[str]:
    """What the dialect's metaschema, and the vocabularies next to it, have a rule for."""
    folder = dialect.removesuffix("schema")
    documents = (REGISTRY.contents(uri) for uri in REGISTRY if uri.startswith(folder))
    return frozenset(name for each in documents for name in each.get("properties", ()))


@functools.cache
def _metaschema(dialect: str) -> Validator:
    """What checks a schema as such: the library's validator, which takes long for long lists.

    No formats are checked: "regex" would ask Python's engine, and ours is another one.
    """
    specification = specification_with(dialect)

    def unnamed(contents: Any) -> Any:
        # The library would go on with its own validator for whatever names its dialect.
        return {key: value for key, value in contents.items() if key != "$schema"}

    registry: Registry[Any] = Registry().with_resources(
        (uri, specification.create_resource(unnamed(REGISTRY.contents(uri)))) for uri in REGISTRY
    )
    validator = validators.extend(DIALECTS[dialect], {"uniqueItems": unique_items})  # type: ignore[no-untyped-call]
    checker: Validator = validator(unnamed(DIALECTS[dialect].META_SCHEMA), registry=registry)
    return checker


def _nodes(document: Mapping[str, Any], dialect: str) -> dict[int, Mapping[str, Any]]:
    """Every subschema by its identity, but for `true` and `false`; raises `SchemaError`."""
    specification = specification_with(dialect)
    nodes: dict[int, Mapping[str, Any]] = {}
    booleans = 0
    waiting: list[Any] = [document]
    while waiting:
        node = waiting.pop()
        booleans += isinstance(node, bool)
        if not isinstance(node, Mapping) or id(node) in nodes:
            continue
        nodes[id(node)] = node
        for keyword, value in node.items():
            try:
                waiting.extend(specification.subresources_of({keyword: value}))
            except (AttributeError, TypeError):
                # Not the list or the object that it has to be; the metaschema will say so.
                continue
    if (count := len(nodes) + booleans) > MAX_SUBSCHEMAS:
        raise SchemaError(f"a schema may hold {MAX_SUBSCHEMAS:,} subschemas, not {count:,}")
    return nodes


def _check_node(node: Mapping[str, Any], *, is_root: bool) -> None:
    for keyword, instead in _REFUSED.items():
        if keyword in node:
            raise SchemaError(f"the keyword {keyword} is not available; {instead}")
    for keyword in ("$id", "$schema"):
        if keyword in node and not is_root:
            raise SchemaError(f"the keyword {keyword} is allowed at the root only")
    if "format" in node and node["format"] not in FORMATS:
        raise SchemaError(f"format {node['format']!r} is not known; known: {', '.join(FORMATS)}")


def _check_patterns(nodes: list[Mapping[str, Any]]) -> None:
    size = 0
    for text in {node["pattern"] for node in nodes if "pattern" in node}:
        try:
            size += Pattern(text).size
        except PatternError as error:
            raise SchemaError(str(error)) from error
        if size > MAX_PATTERN_SIZE:
            raise SchemaError("the patterns of the schema are too large together")


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
    # Draft 7 has "dependencies", whose values may also be lists of names.
    for keyword in ("dependentSchemas", "dependencies"):
        dependent = node.get(keyword)
        yield from dependent.values() if isinstance(dependent, Mapping) else ()


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}…"
