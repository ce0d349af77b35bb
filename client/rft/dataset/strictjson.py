"""Strict JSON, with the place of everything that is wrong.

Python's parser takes NaN and infinities, keeps the last of duplicate keys and accepts lone
surrogates. Here its hooks leave marks behind, and a walk over the parsed row, made only when
there may be something to find, turns the marks into findings with JSON pointers.
"""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from rft.dataset.report import Finding

#: Deepest nesting of arrays and objects.
MAX_DEPTH = 64

#: Most values in one line, counted as commas and opening brackets, those in texts included: what
#: is parsed takes many times the memory of its text.
MAX_VALUES = 1_000_000

#: Largest whole number, so that every reader can take it for a double.
MAX_INTEGER = int(sys.float_info.max)

#: Most findings about the JSON of one line; of more, the first are told.
MAX_FINDINGS = 1_000

#: What the parser says, and what that means to whoever wrote the line.
_MISTAKES = {
    "Expecting value": "a value is missing, or is not one of JSON's",
    "Expecting property name": "a name in double quotes is missing",
    "Expecting ':'": "a colon is missing",
    "Expecting ','": "a comma or the closing bracket is missing",
    "Extra data": "something follows the end of the row",
    "Unterminated string": "a text begins that does not end",
    "Invalid control character": "a control character, such as a tab, must be escaped",
    "Invalid \\": "an escape is not one of JSON's",
    "Illegal trailing comma": "a comma is too many",
}

#: Objects with keys that stand twice, by identity, and these keys.
_Duplicates: TypeAlias = dict[int, tuple[object, list[str]]]

_MOST_DIGITS = len(str(MAX_INTEGER))
_TROUBLE_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Bad(NamedTuple):
    """Stands in the parsed row for a number that JSON does not have."""

    rule: str
    message: str


def pointer(parent: str, key: str | int) -> str:
    """The JSON pointer of a member; always encodable, whatever the key holds."""
    escaped = str(key).replace("~", "~0").replace("/", "~1")
    return f"{parent}/{shown(escaped)}"


def shown(text: str, limit: int = 60) -> str:
    """A text fit for a message: short, encodable, and without control characters.

    A database may refuse NUL, and a log takes a line feed for the end of its entry.
    """
    visible = _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text[:limit])
    fits = len(text) <= limit and len(visible) <= limit
    return visible if fits else f"{visible[: limit - 1]}…"


def crowded(data: bytes) -> bool:
    """Whether a line has more values than `MAX_VALUES`."""
    if len(data) <= MAX_VALUES:
        return False
    return data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES


def parse(text: str) -> tuple[Any, list[Finding]]:
    """Parse one line; the value is None when it is no JSON at all."""
    hooks = _Hooks()
    try:
        value = hooks.decoder.decode(text)
    except json.JSONDecodeError as error:
        said = next((said for start, said in _MISTAKES.items() if error.msg.startswith(start)), "")
        message = f"Not valid JSON: {said or error.msg} (column {error.pos + 1})."
        return None, [Finding("invalid_json", "", message, len(text[: error.pos].encode()))]
    except RecursionError:
        return None, [_too_deep("")]
    nested = text.count("{") + text.count("[") > MAX_DEPTH
    if nested or hooks.marked or _TROUBLE_ESCAPE.search(text):
        return value, list(islice(_walk(value, "", 1, hooks.duplicates), MAX_FINDINGS))
    return value, []


class _Hooks:
    """One parse's hooks: numbers that are none become `_Bad`, duplicate keys are noted."""

    def __init__(self) -> None:
        self.marked = False
        # By identity; the object is kept beside its keys so that the identity stays its own.
        self.duplicates: _Duplicates = {}
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_int=self._int,
            parse_constant=self._constant,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            self.marked = True
            if len(self.duplicates) == MAX_FINDINGS:
                return result
            counts = Counter(key for key, _ in pairs)
            twice = [key for key, count in counts.items() if count > 1]
            self.duplicates[id(result)] = (result, twice)
        return result

    def _float(self, text: str) -> float | _Bad:
        value = float(text)
        return value if math.isfinite(value) else self._constant(text)

    def _int(self, text: str) -> int | _Bad:
        digits = len(text) - text.startswith("-")
        if digits <= _MOST_DIGITS:
            value = int(text)
            if digits < _MOST_DIGITS or abs(value) <= MAX_INTEGER:
                return value
        self.marked = True
        return _Bad("number_too_large", f"The number {shown(text, 20)} has {digits} digits.")

    def _constant(self, text: str) -> _Bad:
        self.marked = True
        return _Bad("non_finite_number", f"{shown(text, 20)} is not a finite number.")


def _walk(value: Any, path: str, level: int, duplicates: _Duplicates) -> Iterator[Finding]:
    if isinstance(value, _Bad):
        yield Finding(value.rule, path, value.message)
    elif isinstance(value, str):
        yield from _text_findings(value, path)
    elif isinstance(value, (dict, list)):
        if level > MAX_DEPTH:
            yield _too_deep(path)
            return
        for key in duplicates.get(id(value), (value, []))[1]:
            message = f"The key '{shown(key)}' stands twice in one object."
            yield Finding("duplicate_key", pointer(path, key), message)
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, member in members:
            if isinstance(name, str):
                yield from _text_findings(name, pointer(path, name))
            if isinstance(member, (str, dict, list, _Bad)):
                yield from _walk(member, pointer(path, name), level + 1, duplicates)


def _text_findings(text: str, path: str) -> list[Finding]:
    findings = []
    lone = _SURROGATE.search(text)
    if lone:
        message = f"Half of a surrogate pair, \\u{ord(lone.group()):04x}, stands alone."
        findings.append(Finding("lone_surrogate", path, message))
    if "\0" in text:
        findings.append(Finding("nul_character", path, "The text holds a NUL character."))
    return findings


def _too_deep(path: str) -> Finding:
    return Finding("too_deep", path, f"The row is nested deeper than {MAX_DEPTH} levels.")
