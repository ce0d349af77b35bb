"""A multipart form as events, while its body arrives: nothing is kept but small fields."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from core.errors import InvalidRequest

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

#: The most fields and files of one form.
MAX_PARTS = 32
#: The longest field that is no file, in bytes.
MAX_FIELD_BYTES = 8 * 1024

#: Transfer encodings in which a part's bytes are sent as they are.
_PLAIN = frozenset({b"7bit", b"8bit", b"binary"})
_EXTENDED = re.compile(rb"""[;\s]filename\*\s*=\s*"?[\w-]+'[^';]*'([^;\s"]+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """A whole field that is no file."""

    name: str
    value: str


@dataclass(frozen=True)
class FileStart:
    """A file begins; `FileData` follows until `FileEnd`."""

    name: str
    filename: str


@dataclass(frozen=True)
class FileData:
    """The next bytes of the file."""

    data: bytes


@dataclass(frozen=True)
class FileEnd:
    """The file is complete."""


Event = Field | FileStart | FileData | FileEnd


def boundary_of(content_type: str) -> bytes:
    """Return the boundary that a form's content type names; raises `InvalidRequest` for none."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not boundary:
        raise _malformed("its content type names no boundary")
    return boundary


async def form_events(body: AsyncIterator[bytes], boundary: bytes) -> AsyncGenerator[Event, None]:
    """Yield what the form holds, in the order in which it was sent.

    Raises `InvalidRequest` for a form that is malformed or ends in the middle, and whatever
    reading the body raises.
    """
    reader = _Reader()
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        async for chunk in body:
            if chunk:
                parser.write(chunk)
            for event in reader.take():
                yield event
    except FormParserError as error:
        raise _malformed("its parts do not follow its boundary") from error
    if not reader.ended:
        raise _malformed("it ends before its last boundary")


def _malformed(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"The multipart form cannot be read: {reason}. Send it as a client library does.",
        code="invalid_form",
    )


@dataclass
class _Reader:
    """Turns the parser's callbacks into events."""

    ended: bool = False
    _events: list[Event] = field(default_factory=list)
    _parts: int = 0
    _header_name: bytes = b""
    _header_value: bytes = b""
    _disposition: bytes = b""
    _name: str = ""
    _is_file: bool = False
    _value: bytearray = field(default_factory=bytearray)

    def callbacks(self) -> "MultipartCallbacks":
        """The functions that the parser calls."""
        return {
            "on_part_begin": self._part_begins,
            "on_part_data": self._part_data,
            "on_part_end": self._part_ends,
            "on_header_field": self._header_field,
            "on_header_value": self._header_text,
            "on_header_end": self._header_ends,
            "on_headers_finished": self._headers_finished,
            "on_end": self._ends,
        }

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _malformed(f"it has more than {MAX_PARTS} fields")
        self._disposition = b""
        self._value.clear()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _header_text(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _header_ends(self) -> None:
        name, value = self._header_name.lower(), self._header_value
        if name == b"content-disposition":
            self._disposition = value
        elif name == b"content-transfer-encoding" and value.strip().lower() not in _PLAIN:
            raise _malformed(f"a part of it is encoded as '{_text(value)}', not sent as it is")
        self._header_name = self._header_value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise _malformed("a part of it has no name")
        self._name = _text(options[b"name"])
        filename = _extended_filename(self._disposition)
        if filename is None and b"filename" in options:
            filename = _text(options[b"filename"])
        self._is_file = filename is not None
        if filename is not None:
            self._events.append(FileStart(self._name, filename))

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._events.append(FileData(data[start:end]))
            return
        self._value += data[start:end]
        if len(self._value) > MAX_FIELD_BYTES:
            raise InvalidRequest(
                f"The form field '{self._name}' is longer than {MAX_FIELD_BYTES:,} bytes;"
                " only a file may be, which needs a filename.",
                param=self._name,
                code="invalid_form",
            )

    def _part_ends(self) -> None:
        self._events.append(FileEnd() if self._is_file else self._field())

    def _field(self) -> Field:
        try:
            return Field(self._name, self._value.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"The form field '{self._name}' is not UTF-8 text.",
                param=self._name,
                code="invalid_form",
            ) from error

    def _ends(self) -> None:
        self.ended = True


def _extended_filename(disposition: bytes) -> str | None:
    """Return the name in the form `filename*=utf-8''%C3%A4`, for clients that send umlauts so."""
    match = _EXTENDED.search(disposition)
    return None if match is None else _text(unquote_to_bytes(match[1]))


def _text(name: bytes) -> str:
    """Decode a name; clients that know no UTF-8 send Latin-1."""
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")
