"""Receive one multipart upload: the file to a temporary file, the fields to a checked form."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

from api.auth import PrincipalDep
from api.bodies import parse, refuse_other_type
from api.errors import PayloadTooLarge, Unavailable
from api.parts import PartsDep
from api.schemas.files import UPLOAD_PURPOSES, Upload, UploadForm
from core.errors import NO_SPACE, InvalidRequest

#: Room for the multipart envelope and the small fields around the largest allowed file, in bytes.
FORM_OVERHEAD = 64 * 1024

#: A form field of an object, as `expires_after[seconds]`.
_NESTED = re.compile(r"(\w+)\[(\w+)\]")
_MAX_FILENAME = 255


async def read_upload(request: Request, parts: PartsDep, _: PrincipalDep) -> AsyncIterator[Upload]:
    """Read the form, and close its temporary file when the route has answered."""
    refuse_other_type(request, wanted="multipart/form-data")
    form = await _form(request)
    try:
        yield _upload(form, parts.settings.max_upload_bytes)
    finally:
        await form.close()


async def _form(request: Request) -> FormData:
    try:
        return await request.form(max_files=1, max_fields=16)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise Unavailable(
            "The server has no disk space left to receive the upload; nothing was stored."
            " Have the operator free space in its temporary folder, then upload again.",
            code="no_disk_space",
        ) from error


def _upload(form: FormData, max_bytes: int) -> Upload:
    fields = _fields(form)
    file = fields.pop("file", None)
    if not isinstance(file, UploadFile):
        raise InvalidRequest(
            "Missing required parameter: 'file', sent as a file of the form.",
            param="file",
            code="missing_required_parameter",
        )
    checked = parse(UploadForm, fields)
    if checked.purpose not in UPLOAD_PURPOSES:
        message = f"'{checked.purpose}' is not one of {list(UPLOAD_PURPOSES)} - 'purpose'"
        raise InvalidRequest(message, param="purpose")
    if not file.size:
        raise InvalidRequest("The file is empty; upload one with content.", param="file")
    if file.size > max_bytes:
        raise PayloadTooLarge(max_bytes)
    expires = checked.expires_after
    return Upload(
        filename=_filename(file.filename or ""),
        content=file.file,
        purpose=checked.purpose,
        expires_after_s=expires.seconds if expires else None,
    )


def _fields(form: FormData) -> dict[str, Any]:
    """Return the form as an object: `expires_after[seconds]=1` is a field of `expires_after`."""
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        nested = _NESTED.fullmatch(name)
        outer, key = (fields.setdefault(nested[1], {}), nested[2]) if nested else (fields, name)
        if not isinstance(outer, dict) or key in outer:
            raise InvalidRequest(f"The form field '{name}' was sent twice.", param=name)
        outer[key] = value
    return fields


def _filename(sent: str) -> str:
    """Return the last part of the name, without what could mislead a terminal or a header."""
    base = re.split(r"[/\\]", sent)[-1]
    return "".join(_printable(base))[:_MAX_FILENAME] or "upload"


def _printable(text: str) -> Iterator[str]:
    return (character for character in text if character.isprintable())


UploadDep = Annotated[Upload, Depends(read_upload)]
