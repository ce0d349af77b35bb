"""Regular expressions of users, matched in time linear in the text.

RE2 has no backtracking, so no pattern can stall a grader; it has no look-around and no
back-references either, and a pattern with one is refused.
"""

import re2  # type: ignore[import-untyped]

#: Longest pattern, in characters.
MAX_CHARS = 2_000

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """The pattern is refused; the message says why, without a final full stop."""


class Pattern:
    """A compiled pattern; the same pattern may be used by several threads."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARS:
            raise PatternError(f"a pattern may hold {MAX_CHARS:,} characters, not {len(text):,}")
        try:
            self._compiled = re2.compile(text, options=_OPTIONS)
        except re2.error as error:
            reason = error.args[0] if error.args else "refused"
            shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            raise PatternError(
                f"pattern {text!r} is not RE2 ({shown}); look-around and back-references "
                "are not available"
            ) from error

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None
