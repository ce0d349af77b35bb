"""The last number of a text, or none when the last thing that looks like one is none.

Never a piece of something else: `1,00`, `3-4`, `10:30`, `v1.2.3` and `5km` are no numbers, and
digits inside of a word (`H2O`, `x_1`, `cm^2`) are looked over.
"""

import re

from graders.quantity.literal import CURRENCIES, QUANTITY
from graders.quantity.plain import GROUP, plain

#: How far before the last digit of a text it is read, in characters.
WINDOW = 2_000
#: How far behind it: `thousand`, `percent`, closing braces.
_BEHIND = 100

_ENDING = re.compile(r"[\d∞¼-¾⅐-⅞]|ytfni\\")

# Every sign and digit must stand free on the left, and on the right nothing may go on.
_LEFT = r"(?<![A-Za-z0-9_.,/^\\+-])(?<![\^_]\{)(?<!\d:)"
_RIGHT = r"(?![A-Za-z0-9_^]|[.,/:+*-]\d|[.,]?\\[A-Za-z])"
_ITEM = rf"[+-]?[{CURRENCIES}]?(?:\d[\d{GROUP}]*(?:\.\d*)?|\.\d+|∞)(?:[eE][+-]?\d+)?[ {GROUP}]?%?"
_LIST = rf"(?<![A-Za-z0-9_])[\[(]\s*{_ITEM}(?:\s*[,;]\s*{_ITEM})+\s*[\])]"
_WORD = r"[A-Za-z][A-Za-z0-9]*(?:[_^](?:\{[^{}]*\}|[A-Za-z0-9-]+))*"
_COMMAND = r"\\(?!boxed|fbox|frac)[A-Za-z]+\s?(?:\[[^\]]*\])?\{[^{}]*\}"
_TOKEN = re.compile(
    rf"(?P<found>{_LIST}|{_LEFT}{QUANTITY}{_RIGHT})"
    rf"|(?P<junk>{_COMMAND})|{_WORD}|(?P<rest>[\d∞][^\s=<>;]*)",
    re.ASCII,
)


def last_number(text: str) -> str | None:
    """The last number, or numbers in brackets, as text; `None` when there is none."""
    ending = _ENDING.search(text[::-1])
    if ending is None:
        return None
    end = len(text) - ending.start()
    window = plain(text[max(0, end - WINDOW) : end + _BEHIND])
    found = None
    for match in _TOKEN.finditer(window):
        if match["found"]:
            found = match["found"]
        elif match["rest"] or (match["junk"] and re.search(r"\d", match["junk"])):
            found = None
    return found
