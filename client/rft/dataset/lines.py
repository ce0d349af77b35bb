"""Physical lines of a file, read in bounded memory.

Only a line feed ends a line: U+2028 and the like are ordinary characters of a JSON text.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

#: Longest line, in bytes; an image of `images.MAX_IMAGE_BYTES` fits as a data URL.
MAX_LINE_BYTES = 16 * 1024 * 1024

BOM = b"\xef\xbb\xbf"

#: What is read, and split, at a time.
CHUNK_BYTES = 256 * 1024


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


def chunks(stream: Readable) -> Iterator[bytes]:
    """Read a stream to its end."""
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def physical_lines(stream: Readable) -> Iterator[Line]:
    """Split a stream into lines, holding at most one line and one chunk.

    A byte order mark at its start belongs to no line.
    """
    splitter = Splitter()
    head = b""
    while len(head) < len(BOM) and (more := stream.read(CHUNK_BYTES)):
        head += more
    number, offset = 0, len(BOM) if head.startswith(BOM) else 0
    for chunk in chain((head[offset:],), chunks(stream)):
        for length, data in splitter.feed(chunk):
            number += 1
            yield Line(number, offset, length, data)
            offset += length + 1
    for length, data in splitter.close():
        yield Line(number + 1, offset, length, data)


class Splitter:
    """Cuts chunks into lines: each as its length in bytes and, unless it is too long, its data.

    The carriage return of a line end is not part of the data, but counts in the length.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._length = 0
        #: Whether objects end at carriage returns in the line that is too long.
        self.has_returns = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Take the next bytes; yields the lines that they end."""
        for start in range(0, len(chunk), CHUNK_BYTES):
            part = chunk[start : start + CHUNK_BYTES] if len(chunk) > CHUNK_BYTES else chunk
            first, *others = part.split(b"\n")
            self._add(first)
            if not others:
                continue
            yield self._ended()
            last = others.pop()
            for line in others:
                yield len(line), line[:-1] if line.endswith(b"\r") else line
            self._add(last)

    def close(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the last line when no line end follows it."""
        if self._length:
            yield self._ended()

    def _add(self, piece: bytes) -> None:
        if not self._length:
            self.has_returns = False
        self._length += len(piece)
        if self._length > MAX_LINE_BYTES:
            self.has_returns = self.has_returns or any(b"}\r" in each for each in self._begun)
            self._begun.clear()
        elif piece:
            self._begun.append(piece)

    def _ended(self) -> tuple[int, bytes | None]:
        length, data = self._length, b"".join(self._begun)
        self._length = 0
        self._begun.clear()
        return length, None if length > MAX_LINE_BYTES else data.removesuffix(b"\r")
