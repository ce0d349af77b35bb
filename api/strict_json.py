"""Request bodies as strict JSON: what Python's own parser lets through is refused.

It keeps the last of two equal keys, which would ignore an option silently, and accepts NaN, lone
surrogates and U+0000, which Postgres would refuse only when the row is written.
"""

from collections.abc import Iterator
from typing import Any

from core.errors import InvalidRequest
from graders import jsontext


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a body that must be one JSON object; raises `InvalidRequest` with the reason."""
    try:
        value = jsontext.parse(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _unreadable(f"it is not UTF-8 (byte {error.start})") from error
    except jsontext.JsonTextError as error:
        raise _unreadable(str(error)) from error
    if not isinstance(value, dict):
        raise _unreadable("it must be an object, { … }")
    for text in _strings(value):
        if "\0" in text:
            raise _unreadable(f"the string {text[:40]!a} holds the character U+0000")
    return value


def _unreadable(reason: str) -> InvalidRequest:
    message = f"The JSON body of the request could not be read: {reason}."
    return InvalidRequest(message, code="invalid_json")


def _strings(value: Any) -> Iterator[str]:
    """Yield every string and key in `value`, without recursion."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict):
            yield from current
            waiting.extend(current.values())
        elif isinstance(current, list):
            waiting.extend(current)
