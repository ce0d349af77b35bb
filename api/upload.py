"""Receive a multipart form with one file: the file streams to where it stays, fields are kept."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from api.auth import PrincipalDep
from api.bodies import FORM, reads, refuse_other_type
from api.errors import PayloadTooLarge
from api.multipart import Field, FileData, FileStart, boundary_of, form_events
from api.schemas.files import UploadForm
from api.schemas.uploads import PartForm
from api.services.sink import ObjectSink
from core.errors import InvalidRequest

#: Room for the multipart envelope and the small fields around the largest allowed file, in bytes.
FORM_OVERHEAD = 64 * 1024

#: A form field of an object, as `expires_after[seconds]`.
_NESTED = re.compile(r"(\w+)\[(\w+)\]")
_MAX_FILENAME = 255


@dataclass
class Received:
    """What a form held beside its file's bytes; `fields` has objects where they were nested."""

    filename: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def add(self, sent: Field) -> None:
        """Take a field: `expires_after[seconds]=1` is a field of `expires_after`."""
        nested = _NESTED.fullmatch(sent.name)
        outer, key = (
            (self.fields.setdefault(nested[1], {}), nested[2])
            if nested
            else (self.fields, sent.name)
        )
        if not isinstance(outer, dict):
            raise _twice(sent.name.partition("[")[0])
        if key in outer:
            raise _twice(sent.name)
        outer[key] = sent.value


@dataclass(frozen=True)
class IncomingForm:
    """A form whose body nobody has read yet."""

    request: Request
    file_field: str

    async def into(
        self,
        sink: ObjectSink,
        *,
        max_bytes: int,
        before_file: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Received:
        """Read the form and write its file to `sink`, which stays open.

        `before_file` gets the fields that came before the file; what it raises refuses the form
        unread. Raises `PayloadTooLarge` for a file over `max_bytes` and `InvalidRequest` for a
        form without the file, with another file, or malformed.
        """
        refuse_other_type(self.request, wanted=FORM)
        boundary = boundary_of(self.request.headers["content-type"])
        received = Received()
        async with aclosing(form_events(self.request.stream(), boundary)) as events:
            async for event in events:
                if isinstance(event, FileData):
                    if sink.bytes + len(event.data) > max_bytes:
                        raise PayloadTooLarge(max_bytes)
                    await sink.write(event.data)
                elif isinstance(event, Field):
                    received.add(event)
                elif isinstance(event, FileStart):
                    self._begin(event, received)
                    if before_file is not None:
                        before_file(received.fields)
        self._check(received, sink)
        return received

    def _begin(self, start: FileStart, received: Received) -> None:
        if start.name != self.file_field:
            raise InvalidRequest(
                f"Unknown parameter: '{start.name}', a file (did you mean '{self.file_field}'?).",
                param=start.name,
                code="unknown_parameter",
            )
        if received.filename is not None:
            raise _twice(start.name)
        received.filename = clean_filename(start.filename)

    def _check(self, received: Received, sink: ObjectSink) -> None:
        if received.filename is None:
            raise InvalidRequest(
                f"Missing required parameter: '{self.file_field}', sent as a file of the form.",
                param=self.file_field,
                code="missing_required_parameter",
            )
        if not sink.bytes:
            raise InvalidRequest(
                "The file is empty; upload one with content.", param=self.file_field
            )


def _twice(name: str) -> InvalidRequest:
    return InvalidRequest(f"The form field '{name}' was sent twice.", param=name)


def clean_filename(sent: str) -> str:
    """Return the last part of the name, without what could mislead a terminal or a header."""
    base = re.split(r"[/\\]", sent)[-1]
    return "".join(_printable(base))[:_MAX_FILENAME] or "upload"


def _printable(text: str) -> Iterator[str]:
    return (character for character in text if character.isprintable())


@reads(UploadForm, content_type=FORM, files=("file",))
def incoming_file(request: Request, _: PrincipalDep) -> IncomingForm:
    """Return the form of `POST /v1/files`."""
    return IncomingForm(request, "file")


@reads(PartForm, content_type=FORM, files=("data",))
def incoming_part(request: Request, _: PrincipalDep) -> IncomingForm:
    """Return the form of a part of an upload."""
    return IncomingForm(request, "data")


IncomingFileDep = Annotated[IncomingForm, Depends(incoming_file)]
IncomingPartDep = Annotated[IncomingForm, Depends(incoming_part)]
