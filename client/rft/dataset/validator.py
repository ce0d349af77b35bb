"""The validator: one pass over a file in bounded memory, all errors at once.

Nothing outside the file is read: an image's address is never fetched.
"""

from typing import Any, get_args

from rft.dataset.conversation import Kind, check_row, needs_of
from rft.dataset.lines import BOM, MAX_LINE_BYTES, Line, Source, opened, physical_lines
from rft.dataset.report import Collector, Finding, Report
from rft.dataset.strictjson import parse

KINDS: tuple[Kind, ...] = get_args(Kind)

#: What files of other kinds start with.
_OTHER_FORMATS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a ZIP archive",
}


def validate(source: Source, kind: Kind = "reinforcement") -> Report:
    """Check a dataset file.

    `source` is a path or a file object that gives bytes. A reinforcement row ends with the
    user's turn; a supervised or warm-start row ends with the assistant's. Raises only what
    reading raises (`OSError`), and `ValueError` for an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}; known: {', '.join(KINDS)}.")
    validation = _Validation(kind)
    with opened(source) as stream:
        for line in physical_lines(stream):
            if not validation.take(line):
                break
    return validation.report()


class _Validation:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._found = Collector()
        self._rows = 0
        self._valid_rows = 0
        self._needs: dict[str, int] = {}
        self._bad_encoding = False

    def take(self, line: Line) -> bool:
        """Check one line; returns whether going on makes sense."""
        if line.number == 1 and line.data is not None:
            other = _other_format(line.data)
            if other:
                message = f"The file looks like {other}, not like UTF-8 text."
                self._add(Finding("not_utf8", "", message), line)
                self._bad_encoding = True
                return False
            line = self._without_bom(line, line.data)
        if line.data is not None and not line.data.strip():
            self._add(Finding("blank_lines", "", "The line is blank."), line)
            return True
        self._rows += 1
        if self._check(line):
            self._valid_rows += 1
        return True

    def _without_bom(self, line: Line, data: bytes) -> Line:
        if not data.startswith(BOM):
            return line
        message = "The file starts with a byte order mark."
        self._add(Finding("bom_stripped", "", message), line)
        return line._replace(data=data[len(BOM) :], offset=len(BOM))

    def report(self) -> Report:
        if not self._rows and not self._bad_encoding:
            self._found.add(Finding("empty_file", "", "The file has no rows."), line=1, offset=0)
        return self._found.report(rows=self._rows, valid_rows=self._valid_rows, needs=self._needs)

    def _check(self, line: Line) -> bool:
        """Check a line that is not blank; returns whether its row is valid."""
        if line.data is None:
            message = f"The line has {line.length:,} bytes; {MAX_LINE_BYTES:,} are allowed."
            self._add(Finding("max_line_bytes", "", message), line)
            return False
        row, findings = self._parse(line.data)
        if row is not None:
            findings += check_row(row, self._kind)
            for need in needs_of(row):
                self._needs.setdefault(need, line.number)
        errors = [self._add(finding, line) for finding in findings]
        return row is not None and not any(errors)

    def _parse(self, data: bytes) -> tuple[dict[str, Any] | None, list[Finding]]:
        """Parse a row; None when it cannot be checked any further."""
        if data.startswith(BOM):
            message = "The line starts with a byte order mark."
            return None, [Finding("bom_inside", "", message)]
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            return None, self._not_utf8(data, error.start)
        row, findings = parse(text)
        if findings:
            return None, findings
        if not isinstance(row, dict):
            message = "The line holds JSON, but no object."
            return None, [Finding("not_an_object", "", message)]
        return row, []

    def _not_utf8(self, data: bytes, start: int) -> list[Finding]:
        """Report the first bad byte of the file only: one wrong encoding is one mistake."""
        if self._bad_encoding:
            return []
        self._bad_encoding = True
        message = f"The byte 0x{data[start]:02x} at {start} bytes into the line is not UTF-8."
        return [Finding("not_utf8", "", message, start)]

    def _add(self, finding: Finding, line: Line) -> bool:
        return self._found.add(finding, line=line.number, offset=line.offset)


def _other_format(data: bytes) -> str | None:
    for start, name in _OTHER_FORMATS.items():
        if data.startswith(start):
            return name
    # UTF-16 without a mark: every other byte of ASCII text is zero.
    return "UTF-16" if 0 in data[:2] else None
