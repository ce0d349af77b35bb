"""A fast way to parse lines in which nothing is wrong.

A row that `decode` returns and that `certain` and `count_strings` confirm is one of which
`strictjson.parse` would say nothing. Any other line is read again by that exact and slower parser:
all this decides how long validation takes and never what it finds.

Duplicate keys are found by counting: a line has two quotes, not counting escaped ones, for every
string in it, keys and values. A parser that drops a key leaves a row with fewer strings.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from rft.dataset.strictjson import MAX_DEPTH, MAX_INTEGER

Decode: TypeAlias = Callable[[bytes], Any]


class Doubt(ValueError):
    """The row may hold something to report."""


def decode(data: bytes, parser: Decode | None = None) -> dict[str, Any] | None:
    """Return the row in `data`, or None when the exact parser has to look at the line.

    The row may still lack keys that stood twice, which `certain` finds out.
    """
    try:
        row = (parser or fastest)(data)
    except _REFUSALS:
        return None
    return row if type(row) is dict else None


def parse(data: bytes) -> dict[str, Any] | None:
    """Return the row in `data` when nothing is wrong with it, None when that is not sure."""
    row = decode(data)
    try:
        return row if row is not None and certain(data, count_strings(row)) else None
    except Doubt:
        return None


def certain(data: bytes, strings: int) -> bool:
    """Whether a row with so many strings, decoded from `data`, is all that stands there."""
    quotes = 2 * strings
    if b"\\" in data:
        if b"\\u0000" in data:
            return False
        if b"\\\\" in data:
            # Without the escaped backslashes, what follows a backslash is escaped.
            data = data.replace(b"\\\\", b"")
        quotes += data.count(b'\\"')
    return data.count(b'"') == quotes


def count_strings(value: Any, level: int = 1) -> int:
    """Count the strings in an object or list, keys and values.

    Raises `Doubt` when it is nested too deep or holds a number that is too large.
    """
    if level > MAX_DEPTH:
        raise Doubt
    if type(value) is dict:
        count = len(value)
        value = value.values()
    else:
        count = 0
    for member in value:
        kind = type(member)
        if kind is str:
            count += 1
        elif kind is dict or kind is list:
            count += count_strings(member, level + 1)
        elif kind is int and not -MAX_INTEGER <= member <= MAX_INTEGER:
            raise Doubt
    return count


def _constant(_text: str) -> NoReturn:
    raise Doubt


def _float(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        return value
    raise Doubt


_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_standard = json.JSONDecoder(parse_constant=_constant, parse_float=_float).decode


def decode_standard(data: bytes) -> Any:
    """Decode with Python's own parser; raises ValueError, also where it would be too lenient."""
    if b"\\u" in data:
        halves = data.count(b"\\ud") + data.count(b"\\uD")
        if halves and (b"\\\\" in data or 2 * len(_SURROGATE_PAIR.findall(data)) != halves):
            raise Doubt
    return _standard(data.decode())


def _fastest() -> tuple[Decode, tuple[type[Exception], ...]]:
    """The quickest parser that is installed, and what it raises.

    msgspec, which is optional, refuses non-finite numbers and lone surrogates by itself.
    """
    refusals = (ValueError, RecursionError)
    try:
        import msgspec
    except ImportError:
        return decode_standard, refusals
    return msgspec.json.Decoder().decode, (*refusals, msgspec.MsgspecError)


fastest, _REFUSALS = _fastest()
