"""Regular expressions of users, matched in time linear in the text.

RE2 has no backtracking, so no pattern can stall a grader; it has no look-around and no
back-references either, and a pattern with one is refused.
"""

import re
from typing import Any

import re2  # type: ignore[import-untyped]

#: Longest pattern, in characters.
MAX_CHARS = 2_000
#: Largest compiled pattern, in bytes: some 20,000 instructions, or a count up to 1,000 of a class.
MAX_COMPILED_BYTES = 2**18

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

#: What other engines have and RE2 has not, by the piece that its error points at.
_MISSING = (
    (r"\(\?[=!]", "look-ahead, (?=…) or (?!…)"),
    (r"\(\?<[=!]", "look-behind, (?<=…) or (?<!…)"),
    (r"\\[1-9]|\\k|\(\?P", r"back-references, \1 or (?P=name)"),
    (r"\(\?>", "atomic groups, (?>…)"),
    (r"\(\?\(", "conditions, (?(1)…)"),
    (r"\(\?(?:R|[0-9])", "recursion, (?R) or (?1)"),
    (r"\(\?#", "comments, (?#…)"),
    (r"[*+?}]\+", "possessive quantifiers, a++"),
    (r"\\Z", r"\Z; write \z"),
    (r"\\u", r"\u; write \x{…}"),
)


class PatternError(ValueError):
    """The pattern is refused; the message says why, without a final full stop."""


class Pattern:
    """A compiled pattern; the same pattern may be used by several threads.

    `multiline` lets `^` and `$` match at every line, `dot_all` lets `.` match a line break.
    """

    def __init__(
        self,
        text: str,
        *,
        ignore_case: bool = False,
        multiline: bool = False,
        dot_all: bool = False,
    ) -> None:
        if len(text) > MAX_CHARS:
            raise PatternError(f"a pattern may hold {MAX_CHARS:,} characters, not {len(text):,}")
        flags = "i" * ignore_case + "m" * multiline + "s" * dot_all
        options = re2.Options()
        options.log_errors = False
        try:
            # By itself first, so that what is wrong is told of the pattern as it was given.
            re2.compile(text, options=_small())
            self._compiled = re2.compile(f"(?{flags}:{text})" if flags else text, options=options)
        except re2.error as error:
            reason = error.args[0] if error.args else "refused"
            shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            raise PatternError(_refusal(text, shown)) from error
        except UnicodeEncodeError as error:
            raise PatternError(f"pattern {text!r} holds half of a surrogate pair") from error

    @property
    def size(self) -> int:
        """How many instructions the compiled pattern has: what a character of text can cost."""
        return int(self._compiled.programsize)

    def require_group(self, group: int | str | None) -> None:
        """Raise `PatternError` unless the pattern has this group; `None` asks for none."""
        names = self._compiled.groupindex
        known = range(self._compiled.groups + 1) if isinstance(group, int) else names
        if group is None or group in known:
            return
        named = f", named {', '.join(names)}" if names else ""
        raise PatternError(
            f"pattern has no group {group!r}; it has {self._compiled.groups} groups{named}"
        )

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self.matches(text, full=False)

    def matches(self, text: str, *, full: bool) -> bool:
        """Whether the pattern matches the whole text, or else anywhere in it."""
        return self._match(text, full=full) is not None

    def group(self, text: str, group: int | str, *, full: bool) -> str | None:
        """What the group holds in the first match; `None` without a match, or outside of it."""
        match = self._match(text, full=full)
        found: str | None = match[group] if match else None
        return found

    def _match(self, text: str, *, full: bool) -> re.Match[str] | None:
        # Only text from JSON can hold half a pair, which is no character and matches none.
        text = _LONE_SURROGATE.sub("\ufffd", text)
        find = self._compiled.fullmatch if full else self._compiled.search
        match: re.Match[str] | None = find(text)
        return match


def _small() -> Any:
    # Counted repetitions in a row take quadratic time to compile: 40 s for 200 of them.
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_COMPILED_BYTES
    return options


def _refusal(pattern: str, reason: str) -> str:
    problem, _, piece = reason.rpartition(": ")
    if problem in ("invalid perl operator", "invalid escape sequence", "bad repetition operator"):
        for missing, name in _MISSING:
            if re.match(missing, piece):
                return f"pattern {pattern!r} is not RE2: it has no {name}"
    return f"pattern {pattern!r} is not RE2 ({reason})"
