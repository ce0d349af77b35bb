"""Suggestions for mistyped names."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, or None when none does."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)
