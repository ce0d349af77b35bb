"""A stored file as an HTTP answer: whole, in part, or not at all when the client has it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from api.errors import envelope
from core.models import File
from core.store import ObjectStore

_MEDIA_TYPE = "application/octet-stream"
_ONE_RANGE = re.compile(r"bytes\s*=\s*(\d*)\s*-\s*(\d*)", re.IGNORECASE)
#: No file has a size of more digits; longer numbers are only there to be costly.
_MAX_DIGITS = 18

_BYTES: dict[str, Any] = {"content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}}
#: What the OpenAPI document says of such answers.
CONTENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole content.", **_BYTES},
    206: {"description": "The range of bytes that `Range` asks for.", **_BYTES},
    304: {"description": "The content is still what `If-None-Match` names."},
    416: {
        "description": "The content ends before the range begins.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}},
    },
}


@dataclass(frozen=True)
class Span:
    """Bytes from `start` up to `end`, exclusive."""

    start: int
    end: int


class Unsatisfiable(ValueError):
    """The range begins after the last byte."""


def content_response(request: Request, store: ObjectStore, file: File) -> Response:
    """Answer a GET for the file's content.

    One range is honoured, also a suffix (`bytes=-500`) or an open one (`bytes=500-`); several, or
    one that cannot be read, give the whole content, as HTTP has it. The ETag is the content's
    SHA-256. Raises `ObjectMissing` and the like when the store cannot give the bytes.
    """
    etag = f'"{file.sha256}"'
    common = {"etag": etag, "accept-ranges": "bytes"}
    if _names(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=common)
    try:
        span = _wanted(request.headers, etag, file.bytes)
    except Unsatisfiable:
        message = f"The file has {file.bytes} bytes; ask for a range that begins before its end."
        headers = {**common, "content-range": f"bytes */{file.bytes}"}
        return envelope(416, message, param="range", code="invalid_range", headers=headers)
    headers = {
        **common,
        # Never shown in the browser: an uploaded page would run beside the dashboard's key.
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}",
    }
    status = 200
    if span is not None:
        status = 206
        headers["content-range"] = f"bytes {span.start}-{span.end - 1}/{file.bytes}"
    size = file.bytes if span is None else span.end - span.start
    headers["content-length"] = str(size)
    content = (
        store.iter(file.object_key)
        if span is None
        else store.iter(file.object_key, start=span.start, end=span.end)
    )
    return StreamingResponse(content, status_code=status, headers=headers, media_type=_MEDIA_TYPE)


def _wanted(headers: Mapping[str, str], etag: str, size: int) -> Span | None:
    asked = headers.get("range")
    if asked is None:
        return None
    unless = headers.get("if-range")
    # A date never matches: no time of change is sent. Only the strong form may join ranges.
    if unless is not None and unless.strip() != etag:
        return None
    return parse_range(asked, size)


def parse_range(asked: str, size: int) -> Span | None:
    """Return the span of a `Range` header in `size` bytes, None for one that is not honoured.

    Raises `Unsatisfiable` for a range without a byte of the content.
    """
    match = _ONE_RANGE.fullmatch(asked.strip())
    if match is None or max(map(len, match.groups())) > _MAX_DIGITS:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        length = min(int(last), size)
        if not length:
            raise Unsatisfiable
        return Span(size - length, size)
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise Unsatisfiable
    return Span(int(first), min(int(last) + 1, size) if last else size)


def _names(header: str | None, etag: str) -> bool:
    """Whether `If-None-Match` names the tag; the weak form counts, as HTTP has it here."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    return etag in {each.strip().removeprefix("W/") for each in header.split(",")}
