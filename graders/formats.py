"""The `format` values of JSON Schema that are checked, and how.

A schema with another format is refused: a format that nothing checks would promise too much.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from jsonschema import FormatChecker

_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|z|[+-][0-9]{2}:[0-9]{2})")
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_DURATION = re.compile(
    r"P(?=[0-9T])([0-9]+W|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+S)?)?)"
)


def _date(text: str) -> bool:
    # fromisoformat also takes 20260131 and 2026-W05, which RFC 3339 does not.
    return len(text) == 10 and text[4] == "-" == text[7] and bool(date.fromisoformat(text))


def _time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    time.fromisoformat(_microseconds(text))
    return True


def _date_time(text: str) -> bool:
    if not _date(text[:10]) or text[10:11] not in ("T", "t") or not _TIME.fullmatch(text[11:]):
        return False
    datetime.fromisoformat(text[:10] + "T" + _microseconds(text[11:]))
    return True


def _microseconds(text: str) -> str:
    """Cut fractions of a second to what `fromisoformat` reads: six digits, and a capital Z."""
    return re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text).upper()


def _hostname(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


_FORMATS: dict[str, Callable[[str], object]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _DURATION.fullmatch,
    "email": _EMAIL.fullmatch,
    "hostname": _hostname,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "uuid": _UUID.fullmatch,
}

FORMATS = tuple(_FORMATS)


def _tolerant(check: Callable[[str], object]) -> Callable[[object], bool]:
    """Formats speak about strings only: other values pass."""
    return lambda value: not isinstance(value, str) or bool(check(value))


def format_checker() -> FormatChecker:
    """A checker of exactly `FORMATS`."""
    checker = FormatChecker(formats=())
    for name, check in _FORMATS.items():
        checker.checks(name, raises=(ValueError, AddressValueError))(_tolerant(check))
    return checker
