"""Images in messages: how they are named, and what a `data:` URL holds. Nothing is fetched."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from rft.dataset.report import Finding
from rft.dataset.strictjson import shown

#: Largest image, in bytes, and the most images of one row.
MAX_IMAGE_BYTES = 10 * 1000 * 1000
MAX_IMAGES = 10

_DETAILS = ("auto", "low", "high")
_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<base64>;base64)?,", re.IGNORECASE)
_HTTP_URL = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE)
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/jpg": "JPEG", "image/webp": "WEBP"}


def check_image(image: Any, path: str) -> Iterator[Finding]:
    """Check the `image_url` of a part."""
    url = image.get("url") if isinstance(image, dict) else None
    if not isinstance(url, str):
        text = 'An image part needs {"image_url": {"url": "..."}}.'
        yield Finding("invalid_content", path, text)
        return
    detail = image.get("detail")
    if detail is not None and detail not in _DETAILS:
        text = f"The detail is {shown(repr(detail))}; known: {', '.join(_DETAILS)}."
        yield Finding("invalid_image", f"{path}/detail", text)
    wrong = _wrong_with(url)
    if wrong:
        yield Finding("invalid_image", f"{path}/url", wrong)


def _wrong_with(url: str) -> str | None:
    if not url[:5].casefold().startswith("data:"):
        if _HTTP_URL.fullmatch(url):
            return None
        return f"'{shown(url)}' is neither an http(s) address nor a data: URL."
    head = _DATA_URL.match(url)
    if head is None or not head["base64"]:
        return "A data: URL must start with data:image/...;base64, as in data:image/png;base64,."
    declared = _FORMATS.get(head["type"].casefold())
    if declared is None:
        return f"The image type '{shown(head['type'])}' is not image/png, image/jpeg or image/webp."
    try:
        content = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return "What follows base64, is not base64, or is cut off."
    return _wrong_with_bytes(content, declared)


def _wrong_with_bytes(content: bytes, declared: str) -> str | None:
    if not content:
        return "The image has no bytes."
    if len(content) > MAX_IMAGE_BYTES:
        return f"The image has {len(content):,} bytes; {MAX_IMAGE_BYTES:,} are allowed."
    found = _format_of(content)
    if found is None:
        return "The bytes are no PNG, JPEG or WEBP image."
    if found != declared:
        return f"The bytes are a {found} image, but the URL says {declared}."
    return f"The {found} image is cut off." if _cut_off(content, found) else None


def _format_of(content: bytes) -> str | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if content.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "WEBP"
    return None


def _cut_off(content: bytes, found: str) -> bool:
    """Whether the end that the format asks for is missing; JPEG files may end in many ways."""
    if found == "PNG":
        return b"IEND" not in content[-64:]
    if found == "WEBP":
        return len(content) < 8 + int.from_bytes(content[4:8], "little")
    return len(content) < 4
