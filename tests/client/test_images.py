"""Images in messages, by address and inline."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rft.dataset import Report, validate
from rft.dataset.images import MAX_IMAGE_BYTES, MAX_IMAGES

from tests.client.rows import file_of, talk
from tests.properties import property_test

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30) + b"\0\0\0\0IEND\xaeB`\x82"
JPEG = b"\xff\xd8\xff\xe0" + bytes(30) + b"\xff\xd9"
WEBP = b"RIFF" + struct.pack("<I", 24) + b"WEBPVP8 " + bytes(16)


def inline(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def check(*urls: Any, **fields: Any) -> Report:
    parts = [{"type": "image_url", "image_url": {"url": url, **fields}} for url in urls]
    return validate(file_of(talk({"role": "user", "content": parts})))


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "HTTP://127.0.0.1:9/x?y=z#w",
        inline(PNG),
        inline(JPEG, "image/jpeg"),
        inline(JPEG, "image/JPG"),
        inline(WEBP, "image/webp"),
        inline(PNG).replace("data:", "DATA:"),
    ],
)
def test_good_images(url: str) -> None:
    report = check(url, detail="low")
    assert report.ok and not report.warnings
    assert report.needs == {"image": 1}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "neither"),
        ("a.png", "neither"),
        ("file:///etc/passwd", "neither"),
        ("https://", "neither"),
        ("http://a b", "neither"),
        (base64.b64encode(PNG).decode(), "neither"),
        ("data:image/png," + "x" * 9, "base64"),
        ("data:image/png;base64", "base64"),
        (inline(PNG, "image/svg+xml"), "image/svg+xml"),
        (inline(PNG, ""), "is not image/png"),
        (inline(PNG, "image/jpeg"), "PNG image, but the URL says JPEG"),
        (inline(b"GIF89a" + bytes(20)), "no PNG"),
        (inline(b""), "no bytes"),
        (inline(PNG)[:-1], "not base64"),
        (inline(PNG).replace("base64,", "base64,\n"), "not base64"),
        (inline(PNG[:-8]), "cut off"),
        (inline(WEBP[:-1], "image/webp"), "cut off"),
        (inline(PNG + bytes(MAX_IMAGE_BYTES)), "10,000,000 are allowed"),
    ],
)
def test_wrong_image(url: str, said: str) -> None:
    [error] = check(url).errors
    assert (error.rule, error.path) == ("invalid_image", "/messages/0/content/0/image_url/url")
    assert said in error.message
    assert len(error.message) < 200


def test_detail_is_one_of_three() -> None:
    [error] = check("https://example.org/a.png", detail="best").errors
    assert (error.rule, error.path) == ("invalid_image", "/messages/0/content/0/image_url/detail")


def test_a_row_has_a_limit_of_images() -> None:
    assert check(*["https://example.org/a"] * MAX_IMAGES).ok
    [error] = check(*["https://example.org/a"] * (MAX_IMAGES + 1)).errors
    assert error.rule == "too_many_images"


def test_an_image_of_the_allowed_size_fits_into_a_line() -> None:
    content = PNG[:-12] + bytes(MAX_IMAGE_BYTES - len(PNG)) + PNG[-12:]
    assert check(inline(content)).ok


def test_part_types_of_other_interfaces_are_pointed_out() -> None:
    part = {"type": "input_image", "image_url": "https://example.org/a.png"}
    [error] = validate(file_of(talk({"role": "user", "content": [part]}))).errors
    assert error.rule == "invalid_content" and "did you mean image_url?" in error.message


@property_test
@given(st.text() | st.binary().map(inline) | st.text(max_size=20).map(lambda t: f"data:{t}"))
def test_no_url_breaks_the_validator(url: str) -> None:
    assert check(url).rows == 1
