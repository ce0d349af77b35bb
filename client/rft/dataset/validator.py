"""The validator: one pass over a file in bounded memory, all errors at once.

Nothing outside the file is read: an image's address is never fetched.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, get_args

from rft.dataset import quickjson
from rft.dataset.checks import RowCheck
from rft.dataset.conversation import check_row, needs_of
from rft.dataset.duplicates import Seen
from rft.dataset.fingerprint import fingerprint
from rft.dataset.formats import ONLY_RETURNS, bad_line, json_hint, other_format
from rft.dataset.lines import BOM, MAX_LINE_BYTES, Source, Splitter, chunks, opened
from rft.dataset.messages import Kind
from rft.dataset.plain import plain
from rft.dataset.preference import check_preference
from rft.dataset.report import Collector, Finding, Report
from rft.dataset.strictjson import MAX_VALUES, crowded, parse
from rft.dataset.tools import KnownTools

KINDS: tuple[Kind, ...] = get_args(Kind)

#: What a file's kind is also called.
ALIASES: dict[str, Kind] = {"dpo": "preference", "sft": "supervised", "rft": "reinforcement"}

#: Bytes at the start of a file that tell its format.
_HEAD_BYTES = 8


def kind_named(name: str) -> Kind:
    """The kind with this name or alias; raises `ValueError` that lists the known ones."""
    for kind in KINDS:
        if name == kind:
            return kind
    if name in ALIASES:
        return ALIASES[name]
    raise ValueError(f"Unknown kind {name!r}; known: {', '.join((*KINDS, *ALIASES))}.")


def kind_of(row: dict[str, Any]) -> Kind:
    """The kind of dataset that a row looks like."""
    if "messages" not in row and not {"input", "preferred_output"}.isdisjoint(row):
        return "preference"
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    answered = isinstance(last, dict) and last.get("role") == "assistant"
    return "supervised" if answered else "reinforcement"


def validate(
    source: Source, kind: str = "reinforcement", *, checks: Sequence[RowCheck] = ()
) -> Report:
    """Check a dataset file.

    `source` is a path or a file object that gives bytes; `kind` and `checks` are as in
    `Validator`. Raises only what reading raises (`OSError`), and `ValueError` for an unknown kind.
    """
    validator = Validator(kind, checks=checks)
    with opened(source) as stream:
        for chunk in chunks(stream):
            validator.feed(chunk)
    return validator.close()


class Validator:
    """Checks a file while its bytes come in.

    A reinforcement row ends with the user's turn; a supervised or warm-start row ends with the
    assistant's; a preference row has an input and two outputs. The kind `auto` is decided by the
    first row that can be read. `checks` look at rows that are otherwise right, for what depends on
    the job. Raises `ValueError` for an unknown kind.
    """

    def __init__(self, kind: str = "reinforcement", *, checks: Sequence[RowCheck] = ()) -> None:
        self._kind = None if kind == "auto" else kind_named(kind)
        self._looks_like: Kind | None = None
        self._checks = tuple(checks)
        self._lines = Splitter()
        self._head: bytes | None = b""
        self._found = Collector()
        self._seen = Seen()
        self._tools = KnownTools()
        self._needs: dict[str, int] = {}
        self._number, self._offset = 0, 0
        self._rows, self._valid_rows = 0, 0
        self._bad_encoding = self._stopped = self._closed = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file; they may end anywhere."""
        if self._closed:
            raise ValueError("The validator is closed; make another one for another file.")
        if self._head is not None:
            self._head += chunk
            if len(self._head) < _HEAD_BYTES:
                return
            chunk = self._start()
        if not self._stopped:
            for length, data in self._lines.feed(chunk):
                self._take(length, data)

    def close(self) -> Report:
        """End the file and return the verdict."""
        if not self._closed:
            self._close()
        kind = self._kind or KINDS[0]
        return self._found.report(
            kind,
            looks_like=self._looks_like or kind,
            rows=self._rows,
            valid_rows=self._valid_rows,
            needs=self._needs,
        )

    def _close(self) -> None:
        if self._head is not None:
            head = self._start()
            for length, data in () if self._stopped else self._lines.feed(head):
                self._take(length, data)
        self._closed = True
        for length, data in self._lines.close():
            self._take(length, data)
        if not self._rows and not self._stopped:
            self._found.add(Finding("empty_file", "", "The file has no rows."), line=1, offset=0)
        self._report_repeats()

    def _start(self) -> bytes:
        """Look at the first bytes of the file; returns those that belong to its lines."""
        head, self._head = self._head or b"", None
        other = other_format(head)
        if other:
            self._stopped = True
            self._found.add(other, line=1, offset=0)
            return b""
        if not head.startswith(BOM):
            return head
        message = "The file starts with a byte order mark."
        self._found.add(Finding("bom_stripped", "", message), line=1, offset=0)
        self._offset = len(BOM)
        return head[len(BOM) :]

    def _take(self, length: int, data: bytes | None) -> None:
        """Check one line."""
        self._number += 1
        if data is not None and (not data or data.isspace()):
            self._add(Finding("blank_lines", "", "The line is blank."))
        else:
            self._rows += 1
            if data is None or not self._take_quickly(data):
                self._valid_rows += self._check_closely(length, data)
        self._offset += length + 1

    def _take_quickly(self, data: bytes) -> bool:
        """Check a line whose JSON is surely right; returns whether it is."""
        row = None if len(data) > MAX_VALUES else quickjson.decode(data)
        if row is None:
            return False
        kind = self._kind or kind_of(row)
        try:
            known = plain(row, kind, self._tools)
            strings = quickjson.count_strings(row) if known is None else known.strings
        except (quickjson.Doubt, RecursionError):
            return False
        if not quickjson.certain(data, strings):
            return False
        self._decide(row)
        if known is None:
            self._valid_rows += self._check_row(row, kind)
            return True
        if known.tools:
            self._needs.setdefault("tools", self._number)
        self._seen.add(hash(known.talk), self._number, self._offset)
        self._valid_rows += self._check_further(row)
        return True

    def _decide(self, row: dict[str, Any]) -> Kind:
        """The kind to read a row as; the first one decides what is not decided."""
        if self._looks_like is None:
            self._looks_like = kind_of(row)
        if self._kind is None:
            self._kind = self._looks_like
        return self._kind

    def _check_row(self, row: dict[str, Any], kind: Kind, earlier: Sequence[Finding] = ()) -> bool:
        """Check a row against the rules; returns whether it has no error."""
        rules = check_preference if kind == "preference" else partial(check_row, kind=kind)
        for need in needs_of(row):
            self._needs.setdefault(need, self._number)
        valid = True
        for finding in chain(earlier, rules(row, known=self._tools)):
            valid = not self._add(finding) and valid
        if not valid:
            return False
        said = fingerprint(row)
        if said is not None:
            self._seen.add(said, self._number, self._offset)
        return self._check_further(row)

    def _check_further(self, row: dict[str, Any]) -> bool:
        valid = True
        for check in self._checks:
            for finding in check(row):
                valid = not self._add(finding) and valid
        return valid

    def _check_closely(self, length: int, data: bytes | None) -> bool:
        """Check a line that the quick parser gave up; returns whether its row is valid."""
        if data is None and self._lines.has_returns:
            self._add(Finding("carriage_returns", "", ONLY_RETURNS))
            return False
        if data is None:
            message = f"The line has {length:,} bytes; {MAX_LINE_BYTES:,} are allowed."
            self._add(Finding("max_line_bytes", "", message))
            return False
        row, findings = self._parse(data)
        if row is not None:
            return self._check_row(row, self._decide(row), findings)
        for finding in findings:
            self._add(finding)
        return False

    def _parse(self, data: bytes) -> tuple[dict[str, Any] | None, list[Finding]]:
        """Parse a row; None when it cannot be checked any further."""
        if data.startswith(BOM):
            message = "The line starts with a byte order mark."
            return None, [Finding("bom_inside", "", message)]
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            return None, self._not_utf8(data, error.start)
        if crowded(data):
            message = f"The line has more than {MAX_VALUES:,} values."
            return None, [Finding("too_many_values", "", message)]
        row, findings = parse(text)
        if any(finding.rule == "invalid_json" for finding in findings):
            return None, [bad_line(finding, data) for finding in findings]
        if not isinstance(row, dict):
            return None, findings or [Finding("not_an_object", "", json_hint(row))]
        deep = any(finding.rule == "too_deep" for finding in findings)
        return None if deep else row, findings

    def _not_utf8(self, data: bytes, start: int) -> list[Finding]:
        """Report the first bad byte of the file only: one wrong encoding is one mistake."""
        if self._bad_encoding:
            return []
        self._bad_encoding = True
        message = f"The byte 0x{data[start]:02x} at {start} bytes into the line is not UTF-8."
        return [Finding("not_utf8", "", message, start)]

    def _report_repeats(self) -> None:
        count, first = self._seen.repeats()
        if first is None:
            return
        message = f"The row says the same as line {first.earlier}"
        rows = "row repeats" if count == 2 else "rows repeat"
        more = "." if count == 1 else f", and {count - 1} more {rows} an earlier one."
        if self._seen.share < 1:
            more += (
                f" (Looked for among {self._seen.share:.1%} of the rows: the file is very long.)"
            )
        finding = Finding("duplicate_row", "", message + more)
        self._found.add(finding, line=first.line, offset=first.offset, count=count)

    def _add(self, finding: Finding) -> bool:
        return self._found.add(finding, line=self._number, offset=self._offset)
