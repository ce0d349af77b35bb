"""Strict JSON: what a completion must be to count as JSON, and what a grader may hold.

Python's parser accepts NaN, infinities, duplicate keys and lone surrogates, and fails with
assorted exceptions on huge numbers and deep nesting. Here all of them are one `JsonTextError`.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

#: Longest text that is parsed, in characters.
MAX_CHARS = 1_000_000
#: Deepest nesting of arrays and objects.
MAX_DEPTH = 64

#: The escapes of UTF-16 surrogates: only texts with one can hold a lone surrogate.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonTextError(ValueError):
    """The text is not strict JSON; the message says why, without a final full stop."""


def parse(text: str) -> Any:
    """Parse strict JSON (surrounding whitespace allowed); raises `JsonTextError`."""
    if len(text) > MAX_CHARS:
        raise JsonTextError(f"longer than {MAX_CHARS:,} characters")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError(f"{error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise JsonTextError(f"nested deeper than {MAX_DEPTH} levels") from error
    if text.count("{") + text.count("[") > MAX_DEPTH and depth(value) > MAX_DEPTH:
        raise JsonTextError(f"nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE_ESCAPE.search(text) or not _encodable(text):
        _refuse_lone_surrogates(value)
    return value


def dumps(value: Any) -> str:
    """Write compact JSON with keys in their order; raises `JsonTextError` when it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonTextError(f"not JSON ({error})") from error


def depth(value: Any) -> int:
    """Count the levels of nested arrays and objects, without recursion; a scalar has none."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        node, level = stack.pop()
        if isinstance(node, dict):
            children = list(node.values())
        elif isinstance(node, list):
            children = node
        else:
            continue
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children)
    return deepest


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_lone_surrogates(value: Any) -> None:
    if not _encodable(json.dumps(value, ensure_ascii=False)):
        raise JsonTextError("half of a surrogate pair stands alone")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise JsonTextError(f"key {twice!r} stands twice in one object")
    return result


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonTextError(f"number {text[:20]} is out of range")
    return value


def _int(text: str) -> int:
    # 308 digits always fit a double, so later arithmetic cannot overflow.
    if len(text.lstrip("-")) > 308:
        raise JsonTextError(f"number {text[:20]}… is out of range")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise JsonTextError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_int, parse_constant=_constant
)
