"""One way to write everything that a number is made of, for Unicode text and LaTeX alike.

Full-width and other digits become ASCII, every minus becomes `-`, every space that groups digits
(no-break and thin ones, LaTeX's `\\,` and `{,}`) becomes `GROUP`, fractions and powers get one
form. Nothing is decided here: what is no number stays none.
"""

import re
import unicodedata
from typing import Any

#: Stands between groups of digits and nowhere else; a comma may also separate two numbers.
GROUP = "\u2009"

_MINUS = "\u2212\u2010\u2011\u2012\u2013\ufe63"
_GROUPING_SPACES = "\u00a0\u2005\u2006\u2007\u2008\u2009\u200a\u202f"
_SIGNS: dict[str, str] = {
    **dict.fromkeys(_MINUS, "-"),
    **dict.fromkeys(_GROUPING_SPACES, GROUP),
    **dict.fromkeys("×⋅·∗", "*"),
    **dict.fromkeys("\u2044\u2215", "/"),
    "\u066a": "%",
    "\u066b": ".",
    "\u066c": ",",
    "\u3002": ".",
    "￥": "¥",
    "￡": "£",
    "￠": "¢",
}

_POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_POWER = re.compile(f"([⁻⁺]?)([{_POWERS}]+)")
_POWER_DIGITS = str.maketrans(_POWERS, "0123456789")

_LATEX: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\\(?:left|right|displaystyle|limits)(?![A-Za-z])|\\!"), ""),
    (re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\{,\}|\\[,:;> ]|~"), GROUP),
    (re.compile(rf"\{{{GROUP}\}}"), GROUP),
    (re.compile(r"\\q?quad(?![A-Za-z])"), " "),
    (re.compile(r"\\[dtc]?frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\infty(?![A-Za-z])"), "∞"),
    (re.compile(r"\\([$%])"), r"\1"),
)


def plain(text: str) -> str:
    """Write a text in the small alphabet that `literal` reads."""
    if not text.isascii():
        text = _POWER.sub(_power, text).translate(_CHARACTERS)
    if "\\" in text or "{" in text or "~" in text:
        for pattern, instead in _LATEX:
            text = pattern.sub(instead, text)
    return text


def _power(match: re.Match[str]) -> str:
    sign = "-" if match[1] == "⁻" else ""
    return f"^{sign}{match[2].translate(_POWER_DIGITS)}"


def _character(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if category == "Zs":
        return " "
    if category == "Cf":
        return ""
    kind, _, parts = unicodedata.decomposition(character).partition(" ")
    if kind == "<fraction>":
        # In 2½ the space is what makes it a mixed number, not 21/2.
        return " " + "".join(chr(int(part, 16)) for part in parts.split()).replace("\u2044", "/")
    return character


class _Characters(dict[int, Any]):
    """`str.translate`'s table, filled as characters are met."""

    def __missing__(self, code: int) -> str | int:
        self[code] = code if code < 0x80 else _character(chr(code))
        found: str | int = self[code]
        return found


_CHARACTERS = _Characters()
