"""What depends on the job: fields that a grader reads, and how long prompts are.

A check is called with a row and yields what it finds. `FieldCheck` and `LengthCheck` are two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from rft.dataset.lines import Source
from rft.dataset.nearest import nearest
from rft.dataset.report import Collector, Finding, Report
from rft.dataset.rows import iter_placed_rows
from rft.dataset.strictjson import pointer

#: The fields of a row that no grader reads: they are the conversation.
RESERVED_KEYS = frozenset({"messages", "tools"})

#: The way to a value: keys of objects and indexes of lists, as `("answer",)` for `item.answer`.
Steps: TypeAlias = Sequence[str | int]


class RowCheck(Protocol):
    """Looks at one row."""

    def __call__(self, row: dict[str, Any], /) -> Iterable[Finding]:
        """Yield what is wrong with the row."""


def examine(source: Source, checks: Sequence[RowCheck], *, kind: str = "reinforcement") -> Report:
    """Apply checks alone to every row of a file that has been validated.

    Raises `DatasetError` at a line that is no row, and what reading raises (`OSError`).
    """
    found = Collector()
    rows = valid_rows = 0
    for line, offset, row in iter_placed_rows(source):
        findings = [finding for check in checks for finding in check(row)]
        errors = [found.add(finding, line=line, offset=offset) for finding in findings]
        rows += 1
        valid_rows += not any(errors)
    return found.report(kind, looks_like=kind, rows=rows, valid_rows=valid_rows, needs={})


class FieldCheck:
    """Checks that rows have the fields that a grader reads as `item.…`.

    Each of `paths` is the steps after `item`. A field that is null is there.
    """

    def __init__(self, paths: Iterable[Steps]) -> None:
        self._paths = [tuple(path) for path in paths]

    def __call__(self, row: dict[str, Any]) -> Iterator[Finding]:
        """Yield a finding for each variable that the row lacks."""
        for path in self._paths:
            value: Any = row
            for position, step in enumerate(path):
                if not _holds(value, step) or (position == 0 and step in RESERVED_KEYS):
                    yield _missing(path, position, value)
                    break
                value = value[step]


class LengthCheck:
    """Checks that `count(row)`, the tokens of its prompt, is at most `limit`.

    `at_most`, when given, is a quick upper bound of the count: rows that it clears are not counted.
    `room` says in words what the limit leaves space for.
    """

    def __init__(
        self,
        count: Callable[[dict[str, Any]], int],
        limit: int,
        *,
        at_most: Callable[[dict[str, Any]], int] | None = None,
        room: str = "",
    ) -> None:
        self._count, self._limit = count, limit
        self._at_most = at_most
        self._room = room
        #: The longest row that was counted, in tokens.
        self.longest = 0

    def __call__(self, row: dict[str, Any]) -> Iterator[Finding]:
        """Yield a finding when the row is too long."""
        if self._at_most is not None and self._at_most(row) <= self._limit:
            return
        tokens = self._count(row)
        self.longest = max(self.longest, tokens)
        if tokens > self._limit:
            text = f"The row has {tokens:,} tokens; {self._limit:,} are allowed{self._room}."
            yield Finding("too_many_tokens", "/messages", text)


def _holds(value: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(value, dict) and step in value
    return isinstance(value, list) and 0 <= step < len(value)


def _missing(path: tuple[str | int, ...], position: int, value: Any) -> Finding:
    where = ""
    for step in path[: position + 1]:
        where = pointer(where, step)
    name = "item" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path)
    if position == 0 and path[0] in RESERVED_KEYS:
        text = f"The grader reads {name}, but {path[0]} is the conversation and no part of item."
        return Finding("missing_field", where, text)
    near = _nearest(path[position], value)
    if near is not None:
        close = "item" + "".join(f".{s}" for s in (*path[:position], near))
        return Finding("missing_field", where, f"The row has no {name}; did you mean {close}?")
    return Finding("missing_field", where, f"The row has no {name}, which the grader reads.")


def _nearest(step: str | int, value: Any) -> str | None:
    if not isinstance(step, str) or not isinstance(value, dict):
        return None
    return nearest(step, (key for key in value if key not in RESERVED_KEYS))
