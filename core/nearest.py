"""Suggestions for mistyped names."""

import difflib
from collections.abc import Iterable

#: Longer names, in characters, are like none that is known; comparing them would take seconds.
LONGEST = 1000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, or None when none does."""
    if len(name) > LONGEST:
        return None
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)
