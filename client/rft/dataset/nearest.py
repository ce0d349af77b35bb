"""Suggestions for mistyped names, in bounded time: files may hold millions of them."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

_MOST_NAMES, _LONGEST_NAME = 200, 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, None when none does.

    Of `known` the first 200 names of up to 60 characters are compared.
    """
    names = islice((other for other in known if len(other) <= _LONGEST_NAME), _MOST_NAMES)
    return _nearest(name[:_LONGEST_NAME], tuple(names))


@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Compare; rows of a file mostly have the same names, so the last answers are kept."""
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None
