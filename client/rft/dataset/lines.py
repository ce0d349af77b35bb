"""Physical lines of a file, read in bounded memory.

Only a line feed ends a line: U+2028 and the like are ordinary characters of a JSON text.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

#: Longest line, in bytes.
MAX_LINE_BYTES = 8 * 1024 * 1024

BOM = b"\xef\xbb\xbf"

_CHUNK_BYTES = 256 * 1024


class Readable(Protocol):
    """A file object that gives bytes."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; none at the end."""


Source: TypeAlias = str | PathLike[str] | Readable


class Line(NamedTuple):
    """A line without its line end: number from 1, offset of its first byte, length in bytes.

    `data` is None when the line is longer than `MAX_LINE_BYTES`.
    """

    number: int
    offset: int
    length: int
    data: bytes | None


def opened(source: Source) -> AbstractContextManager[Readable]:
    """Open a path; a file object is taken as it is and left open."""
    if isinstance(source, (str, PathLike)):
        return Path(source).open("rb")
    return nullcontext(source)


def physical_lines(stream: Readable) -> Iterator[Line]:
    """Split a stream into lines, holding at most one line and one chunk."""
    number, offset, length = 1, 0, 0
    kept = bytearray()
    while chunk := stream.read(_CHUNK_BYTES):
        *ended, last = chunk.split(b"\n")
        for piece in ended:
            length += len(piece)
            _keep(kept, piece, length)
            yield _line(number, offset, length, kept)
            number, offset, length = number + 1, offset + length + 1, 0
            kept.clear()
        length += len(last)
        _keep(kept, last, length)
    if length:
        yield _line(number, offset, length, kept)


def _keep(kept: bytearray, piece: bytes, length: int) -> None:
    if length <= MAX_LINE_BYTES:
        kept += piece
    else:
        kept.clear()


def _line(number: int, offset: int, length: int, kept: bytearray) -> Line:
    if length > MAX_LINE_BYTES:
        return Line(number, offset, length, None)
    return Line(number, offset, length, bytes(kept).removesuffix(b"\r"))
