"""Reading the rows of a dataset that has been validated."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rft.dataset import quickjson
from rft.dataset.lines import Line, Source, opened, physical_lines
from rft.dataset.strictjson import MAX_VALUES, crowded, parse


class DatasetError(ValueError):
    """A line is no row; the message names the line and the reason."""


class PlacedRow(NamedTuple):
    """A row with its place: line from 1, byte offset from 0."""

    line: int
    offset: int
    row: dict[str, Any]


def iter_rows(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, one at a time; raises `DatasetError` at the first bad line."""
    for placed in iter_placed_rows(source):
        yield placed.row


def iter_placed_rows(source: Source) -> Iterator[PlacedRow]:
    """Yield the rows of a file with their places; raises `DatasetError` at the first bad line."""
    with opened(source) as stream:
        for line in physical_lines(stream):
            if line.data is None or line.data.strip():
                yield PlacedRow(line.number, line.offset, _row(line))


def _row(line: Line) -> dict[str, Any]:
    data = line.data
    if data is None:
        raise DatasetError(f"Line {line.number} is too long ({line.length:,} bytes).")
    if crowded(data):
        raise DatasetError(f"Line {line.number} has more than {MAX_VALUES:,} values.")
    quick = quickjson.parse(data)
    if quick is not None:
        return quick
    try:
        row, findings = parse(data.decode())
    except UnicodeDecodeError as error:
        raise DatasetError(f"Line {line.number} is not UTF-8: {error}.") from error
    if findings:
        raise DatasetError(f"Line {line.number}: {findings[0].message}")
    if not isinstance(row, dict):
        raise DatasetError(f"Line {line.number} holds JSON, but no object.")
    return row
