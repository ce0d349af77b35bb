"""Reading one number, exactly: sign, digits, fraction, exponent, scale, percent and currency.

Values are fractions of integers, so nothing is rounded, and both digits and exponents are
bounded, so nothing explodes. Texts are in the form of `plain`.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from graders.quantity.plain import GROUP

#: Longest text of one number, in characters.
MAX_CHARS = 1_000
#: Largest power of ten, either way.
MAX_EXPONENT = 5_000

CURRENCIES = "".join(c for c in map(chr, range(0x20C1)) if unicodedata.category(c) == "Sc")

_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
#: Written right behind the digits; M may not be small, since that is a metre as well.
_SUFFIXES = {"k": 3, "K": 3, "M": 6, "mn": 6, "B": 9, "bn": 9, "tn": 12}

# Groups of three as in 1,000,000, or the Indian ones as in 10,00,000; never two signs in one.
_INTEGER = (
    rf"(?:[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|(?:{GROUP}\d{{3}})+)|[1-9]\d?(?:,\d\d)+,\d{{3}}|\d+)"
    rf"(?!\d)"
)
_DECIMAL = rf"(?:{_INTEGER}(?:\.\d*)?|\.\d+)"
_GAP = rf"[ {GROUP}]?"
_POWER = rf"10{_GAP}\^{_GAP}(?:\{{\s*[+-]?\d+\s*\}}|[+-]?\d+)"
_EXPONENT = rf"(?:[eE][+-]?\d+|{_GAP}[*x]{_GAP}{_POWER})"
_PART = rf"\{{\s*[+-]?{_DECIMAL}\s*\}}"
_NUMBER = (
    rf"(?:(?P<whole>\d+)(?:{_GAP}\\frac{_GAP}\{{(?P<mt>\d+)\}}{_GAP}\{{(?P<mb>\d+)\}}"
    rf"|[ {GROUP}](?P<st>\d+)/(?P<sb>\d+))"
    rf"|\\frac{_GAP}(?P<ft>{_PART}){_GAP}(?P<fb>{_PART})|\\frac{_GAP}(?P<dt>\d){_GAP}(?P<db>\d)"
    rf"|(?P<top>{_DECIMAL}){_GAP}/{_GAP}(?P<bottom>{_DECIMAL})"
    rf"|(?P<power>{_POWER})|(?P<decimal>{_DECIMAL})(?P<exponent>{_EXPONENT})?)"
)
_WORD_END = r"(?![A-Za-z])"
_SCALE = (
    rf"(?:{_GAP}(?P<scale>(?i:{'|'.join(_SCALES)}))|(?P<suffix>{'|'.join(_SUFFIXES)})){_WORD_END}"
)
_PERCENT = rf"{_GAP}(?P<percent>%|(?i:percent|per cent){_WORD_END})"
#: One number with all that may stand around it.
QUANTITY = (
    rf"(?P<sign>[+-])?(?:(?P<before>[{CURRENCIES}]){_GAP}(?P<inner>[+-])?)?"
    rf"(?:(?P<infinity>∞|(?i:infinity|inf){_WORD_END})|{_NUMBER}(?:{_SCALE})?)"
    rf"(?:{_PERCENT}|(?P<after>{_GAP}[{CURRENCIES.replace('$', '')}]|\$))?"
)
_QUANTITY = re.compile(QUANTITY, re.ASCII)

Groups: TypeAlias = dict[str, str | None]


@dataclass(frozen=True)
class Quantity:
    """A number as it is written: 5 % has the value 5 and is a percentage.

    `infinite` is 1 or -1 for an infinity, whose value says nothing, and 0 for a number.
    """

    value: Fraction
    infinite: int = 0
    percent: bool = False
    currency: str | None = None


def read_quantity(text: str) -> Quantity | None:
    """Read a text that is one number and nothing else; `None` when it is not, or too large."""
    if len(text) > MAX_CHARS:
        return None
    match = _QUANTITY.fullmatch(text.strip(f" \t\r\n{GROUP}"))
    return _quantity(match.groupdict()) if match else None


def _quantity(groups: Groups) -> Quantity | None:
    signs = [sign for sign in (groups["sign"], groups["inner"]) if sign]
    currency = _currency(groups["before"], groups["after"])
    if len(signs) > 1 or currency is None:
        return None
    sign = -1 if "-" in signs else 1
    percent = groups["percent"] is not None
    if groups["infinity"]:
        return Quantity(Fraction(0), sign, percent, currency or None)
    value = _value(groups)
    if value is None:
        return None
    shift = _SCALES.get((groups["scale"] or "").lower(), 0) + _SUFFIXES.get(
        groups["suffix"] or "", 0
    )
    return Quantity(sign * value * 10**shift, 0, percent, currency or None)


def _currency(before: str | None, after: str | None) -> str | None:
    """The sign of money, or an empty text for none; `None` when there are two."""
    first, second = before or "", (after or "").strip(f" {GROUP}")
    if first == second == "$":
        # LaTeX's mathematics, not money.
        return ""
    return None if first and second else first or second


def _value(groups: Groups) -> Fraction | None:
    if whole := groups["whole"]:
        fraction = _ratio(groups["mt"] or groups["st"], groups["mb"] or groups["sb"])
        return Fraction(int(whole)) + fraction if fraction and fraction < 1 else None
    for top, bottom in (("ft", "fb"), ("dt", "db"), ("top", "bottom")):
        if groups[top]:
            return _ratio(groups[top], groups[bottom])
    if groups["power"]:
        return _power_of_ten(groups["power"])
    mantissa = _decimal(groups["decimal"] or "")
    if not groups["exponent"]:
        return mantissa
    power = _power_of_ten(groups["exponent"])
    return None if power is None else mantissa * power


def _ratio(top: str | None, bottom: str | None) -> Fraction | None:
    divisor = _decimal(bottom or "")
    return _decimal(top or "") / divisor if divisor else None


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(rf"[\s{{}},{GROUP}]", "", text))


def _power_of_ten(text: str) -> Fraction | None:
    exponent = re.split(r"[eE^]", text)[-1].strip(" {}")
    # Counted before it is read: a thousand digits are no exponent to compute with.
    digits = exponent.lstrip("+-0") or "0"
    if len(digits) > len(str(MAX_EXPONENT)) or int(digits) > MAX_EXPONENT:
        return None
    power = 10 ** int(digits)
    return Fraction(1, power) if exponent.startswith("-") else Fraction(power)
