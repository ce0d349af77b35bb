"""What an answer says: one number, or several in brackets, as intervals and points have them.

A comma between digits can group them or separate two numbers. In `8,152,260` it groups, and the
groups must be valid. In brackets both happen: `[8,152,260]` may be 8 and 152260. A reference has
one reading (see `Items.settled`); an answer is right when one of its readings is the reference.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from graders.quantity.literal import MAX_CHARS, Quantity, read_quantity
from graders.quantity.plain import GROUP, plain

#: Most numbers in brackets.
MAX_ITEMS = 100

_BRACKETS = re.compile(r"([\[(])(.*)([\])])", re.DOTALL)
_SEPARATOR = re.compile("([,;])")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_OPEN_DOLLAR = re.compile(r"(?<!\\)\$")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_UNWRAPS = 8

Same: TypeAlias = Callable[[Quantity, Quantity], bool]


@dataclass(frozen=True)
class Items:
    """Numbers in brackets, cut at every separator.

    `glued[i]` says that no more than a comma stands between the digits of parts i and i + 1, so
    that they may be groups of one number.
    """

    brackets: str
    parts: tuple[str, ...]
    glued: tuple[bool, ...]

    def settled(self) -> list[Quantity] | None:
        """The numbers of a reference; `None` when there is no reading.

        When some separator has a space behind it, a comma without one groups digits, where that
        gives a number. Else every comma separates, as in compact JSON, but for one before a group
        that could not be a number of its own, as in `[1,000]`.
        """
        grouping = not all(self.glued)
        found: list[Quantity] = []
        for run in self._runs():
            joined, apart = [",".join(run)], run
            padded = any(re.match(r"0\d", part) for part in run)
            readings = (joined, apart) if grouping or padded else (apart, joined)
            numbers = next((n for r in readings if (n := _all_read(r)) is not None), None)
            if numbers is None:
                return None
            found.extend(numbers)
        return found

    def says(self, wanted: list[Quantity], same: Same) -> bool:
        """Whether one way to group the digits gives these numbers, in this order."""
        reached: list[set[int]] = [{0}] + [set() for _ in self.parts]
        for start, counts in enumerate(reached[:-1]):
            for stop in range(start + 1, len(self.parts) + 1):
                if not all(self.glued[start : stop - 1]):
                    break
                number = read_quantity(",".join(self.parts[start:stop])) if counts else None
                if number is None:
                    continue
                matched = {c + 1 for c in counts if c < len(wanted) and same(number, wanted[c])}
                reached[stop] |= matched
        return len(wanted) in reached[-1]

    def _runs(self) -> list[list[str]]:
        runs = [[self.parts[0]]]
        for glued, part in zip(self.glued, self.parts[1:], strict=True):
            if glued:
                runs[-1].append(part)
            else:
                runs.append([part])
        return runs


Answer: TypeAlias = Quantity | Items


def read_answer(text: str) -> Answer | None:
    """Read a text that is a number, or numbers in brackets, and nothing else.

    LaTeX's mathematics signs, a `\\boxed{…}` around the whole and one full stop are taken off.
    """
    stripped = unwrapped(text)
    if len(stripped) > MAX_CHARS * 2:
        return None
    written = plain(stripped).strip(f" \t\r\n{GROUP}")
    bracketed = _BRACKETS.fullmatch(written)
    return _items(bracketed) if bracketed else read_quantity(written)


def unwrapped(text: str) -> str:
    """The text without what LaTeX puts around a whole formula."""
    for _ in range(_UNWRAPS):
        text = text.strip()
        if text.endswith((".", "。")) and not text.endswith(".."):
            text = text[:-1].rstrip()
        inner = _inner(text)
        if inner is None:
            return text
        text = inner
    return text


def boxed(text: str) -> str | None:
    """What stands in the last `\\boxed{…}` of a text; `None` without one that is closed."""
    last = next(iter(deque(_BOX.finditer(text), maxlen=1)), None)
    if last is None:
        return None
    end = _closing(text, last.end())
    return None if end is None else text[last.end() : end]


def _inner(text: str) -> str | None:
    for opening, closing in _DELIMITERS:
        inner = text[len(opening) : -len(closing)]
        wraps = text.startswith(opening) and text.endswith(closing)
        if wraps and inner.strip() and not _OPEN_DOLLAR.search(inner) and not inner.endswith("\\"):
            return inner
    box = _BOX.match(text)
    if box and _closing(text, box.end()) == len(text) - 1:
        return text[box.end() : -1]
    return None


def _closing(text: str, start: int) -> int | None:
    """Where the brace closes that was opened just before `start`."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return brace.start()
    return None


def _items(match: re.Match[str]) -> Items | None:
    pieces = _SEPARATOR.split(match[2])
    parts, separators = pieces[::2], pieces[1::2]
    if len(parts) > MAX_ITEMS:
        return None
    pairs = zip(separators, parts[:-1], parts[1:], strict=True)
    glued = [
        comma == "," and before[-1:].isdigit() and after[:1].isdigit()
        for comma, before, after in pairs
    ]
    return Items(match[1] + match[3], tuple(parts), tuple(glued))


def _all_read(texts: list[str]) -> list[Quantity] | None:
    found = [read_quantity(text) for text in texts]
    return [number for number in found if number is not None] if all(found) else None
