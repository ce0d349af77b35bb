"""Multipart forms: read the same wherever the network cuts them, and refused when malformed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.multipart import (
    MAX_FIELD_BYTES,
    MAX_PARTS,
    Event,
    Field,
    FileData,
    FileEnd,
    FileStart,
    boundary_of,
    form_events,
)
from core.errors import InvalidRequest
from tests.properties import property_test

BOUNDARY = b"limit"
END = b"--limit--"
#: What forms are made of.
SHARDS = [
    *(b"--limit", b"--limit--", b"--", b"\r\n", b"\n", b"\0", b"\xff", b":", b"x" * 50),
    *(b"content-disposition: form-data", b"; name=f", b'; filename="a"', b"; filename*=utf-8''%"),
]
FILE = b"one\r\n--limi\r\n--limit-\r\n\r--limit\n\r\n-"


def part(headers: bytes, body: bytes) -> bytes:
    """One part of a form, up to the next boundary."""
    return b"--limit\r\n" + headers + b"\r\n\r\n" + body + b"\r\n"


def field(name: str, value: bytes) -> bytes:
    """A part that is no file."""
    return part(f'Content-Disposition: form-data; name="{name}"'.encode(), value)


def file(content: bytes, *, name: str = "file", filename: str = "a.jsonl") -> bytes:
    """A part that is a file."""
    disposition = f'form-data; name="{name}"; filename="{filename}"'
    return part(f"content-disposition: {disposition}\r\nContent-Type: x/y".encode(), content)


FORM = field("purpose", b"fine-tune") + file(FILE) + field("n", b"") + b"--limit--\r\n"


async def sent(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def read(*chunks: bytes) -> list[Event]:
    """Read a form that arrives in these chunks, with the file's bytes joined."""

    async def collect() -> list[Event]:
        events: list[Event] = []
        async for event in form_events(sent(chunks), BOUNDARY):
            last = events[-1] if events else None
            if isinstance(event, FileData) and isinstance(last, FileData):
                events[-1] = FileData(last.data + event.data)
            else:
                events.append(event)
        return events

    return asyncio.run(collect())


WHOLE = [
    Field("purpose", "fine-tune"),
    FileStart("file", "a.jsonl"),
    FileData(FILE),
    FileEnd(),
    Field("n", ""),
]


def test_cut_at_every_offset() -> None:
    assert read(FORM) == WHOLE
    for cut in range(len(FORM)):
        assert read(FORM[:cut], FORM[cut:]) == WHOLE
    assert read(*(FORM[at : at + 1] for at in range(len(FORM)))) == WHOLE


@property_test
@given(content=st.binary(max_size=200), cuts=st.sets(st.integers(0, 400), max_size=8))
def test_any_content_arrives_as_it_was_sent(content: bytes, cuts: set[int]) -> None:
    if b"\r\n--limit" in b"\r\n" + content:
        return  # its client would have chosen another boundary
    form = file(content) + b"--limit--\r\n"
    edges = [0, *sorted(cut for cut in cuts if cut < len(form)), len(form)]
    events = read(*(form[a:b] for a, b in pairwise(edges)))
    data = [event.data for event in events if isinstance(event, FileData)]
    assert b"".join(data) == content
    assert events[-1] == FileEnd()


@property_test
@given(pieces=st.lists(st.sampled_from(SHARDS), max_size=20))
def test_whatever_is_sent_is_read_or_refused_in_a_sentence(pieces: list[bytes]) -> None:
    try:
        read(*pieces)
    except InvalidRequest as error:
        assert error.message.startswith("The ")


def test_preamble_and_epilogue_are_no_content() -> None:
    assert read(b"\r\n" + FORM + b"epilogue\r\n--limit\r\n") == WHOLE


def test_names_in_other_alphabets() -> None:
    for sent_name, name in (("ä".encode(), "ä"), ("ä".encode("latin-1"), "ä")):
        disposition = b'content-disposition: form-data; name="f"; filename="' + sent_name + b'"'
        events = read(part(disposition, b"x") + b"--limit--")
        assert events[0] == FileStart("f", name)
    for extended in (b"filename*=UTF-8''%C3%A4", b"filename=x; FileName*=iso-8859-1'en'%E4"):
        events = read(part(b'content-disposition: form-data; name="f"; ' + extended, b"x") + END)
        assert events[0] == FileStart("f", "ä")
    quoted = b'content-disposition: form-data; name="f"; filename="a;b.jsonl"'
    assert read(part(quoted, b"x") + END)[0] == FileStart("f", "a;b.jsonl")


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (b"", "ends before its last boundary"),
        (FORM[: FORM.index(b"--limit--")], "ends before its last boundary"),
        (FORM[:-4], "ends before its last boundary"),
        (b"no form at all", "do not follow its boundary"),
        (b"--other\r\n\r\nx\r\n--other--\r\n", "do not follow its boundary"),
        (part(b"Content-Type: text/plain", b"x"), "has no name"),
        (part(b"no header", b"x"), "do not follow its boundary"),
        (part(b"X: " + b"y" * 100_000, b"x"), "do not follow its boundary"),
        (part(b"\r\n".join([b"X: y"] * 100), b"x"), "do not follow its boundary"),
        (field("n", b"x") * (MAX_PARTS + 1), f"more than {MAX_PARTS} fields"),
    ],
)
def test_malformed(form: bytes, reason: str) -> None:
    for chunks in ([form], [form[at : at + 7] for at in range(0, len(form), 7)]):
        with pytest.raises(InvalidRequest, match=reason) as caught:
            read(*chunks)
        assert caught.value.code == "invalid_form"


def test_fields_that_are_no_fields() -> None:
    with pytest.raises(InvalidRequest, match="'n' is longer than") as caught:
        read(field("n", b"x" * (MAX_FIELD_BYTES + 1)))
    assert caught.value.param == "n"
    with pytest.raises(InvalidRequest, match="'n' is not UTF-8"):
        read(field("n", b"\xff") + b"--limit--")


def test_boundaries() -> None:
    assert boundary_of("multipart/form-data; boundary=limit") == b"limit"
    assert boundary_of('multipart/form-data; charset=utf-8; boundary="a b"') == b"a b"
    for content_type in ("multipart/form-data", "multipart/form-data; boundary=", ""):
        with pytest.raises(InvalidRequest, match="names no boundary"):
            boundary_of(content_type)
    with pytest.raises(InvalidRequest, match="do not follow"):
        asyncio.run(anext(form_events(sent([b"x"]), b"b" * 1000)))


def test_a_part_must_be_sent_as_it_is() -> None:
    def encoded(how: bytes) -> list[Event]:
        headers = b'content-disposition: form-data; name="n"\r\nContent-Transfer-Encoding: ' + how
        return read(part(headers, b"a=3D") + b"--limit--\r\n")

    for how in (b"binary", b"8BIT", b" 7bit "):
        assert encoded(how) == [Field("n", "a=3D")]
    for how in (b"base64", b"quoted-printable"):
        with pytest.raises(InvalidRequest, match=how.decode()):
            encoded(how)
