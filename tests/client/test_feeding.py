"""The validator is fed in pieces, in bounded memory; and what it is told of the job."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rft.dataset import FieldCheck, LengthCheck, Report, Validator, examine, kind_named, validate
from rft.dataset.duplicates import Seen
from rft.dataset.lines import MAX_LINE_BYTES

from tests.client.rows import ANSWER, USER, file_of, talk
from tests.properties import json_values, property_test

ROW = json.dumps(talk(USER)).encode()


def fed(data: bytes, sizes: list[int], kind: str = "auto") -> Report:
    validator = Validator(kind)
    at = 0
    for size in sizes:
        validator.feed(data[at : at + size])
        at += size
    validator.feed(data[at:])
    return validator.close()


@property_test
@given(
    lines=st.lists(
        st.sampled_from([ROW, ROW + b"\r", b"", b" ", b"[]", b"\xff", b"\xef\xbb\xbf{}", b"{}\r{}"])
        | st.binary(max_size=12),
        max_size=6,
    ),
    start=st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"PK\x03\x04", b"\x1f\x8b"]),
    sizes=st.lists(st.integers(0, 9), max_size=12),
)
def test_pieces_make_no_difference(lines: list[bytes], start: bytes, sizes: list[int]) -> None:
    data = start + b"\n".join(lines)
    whole = validate(io.BytesIO(data), "auto")
    assert fed(data, sizes) == fed(data, [1] * len(data)) == whole


def test_closing_twice_says_the_same_and_feeding_then_is_refused() -> None:
    validator = Validator()
    validator.feed(ROW)
    assert validator.close() == validator.close()
    assert validator.close().ok
    with pytest.raises(ValueError, match="closed"):
        validator.feed(ROW)


def test_nothing_fed_is_an_empty_file() -> None:
    assert Validator("auto").close().error_counts == {"empty_file": 1}


def test_auto_takes_the_kind_of_the_first_row_that_can_be_read() -> None:
    answered = json.dumps(talk(USER, ANSWER)).encode()
    assert fed(answered + b"\n" + ROW, []).kind == "supervised"
    assert fed(b"{\n" + ROW + b"\n" + answered, []).kind == "reinforcement"
    assert fed(b'{"chosen":1,"preferred_output":[]}', []).kind == "preference"
    assert [kind_named(name) for name in ("dpo", "sft", "rft", "warm_start")] == [
        "preference",
        "supervised",
        "reinforcement",
        "warm_start",
    ]


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(rows: int) -> int:
        tracemalloc.start()
        validator = Validator()
        for n in range(rows):
            validator.feed(b'{"messages":[{"role":"user","content":"%d"}],"bad":}\n' % n)
        validator.feed(b"x" * (4 * MAX_LINE_BYTES))
        validator.close()
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(4_000) < peak(40) + 1_000_000


def test_long_files_are_searched_for_repeats_by_a_share() -> None:
    seen = Seen(limit=100)
    for line in range(1, 2_001):
        seen.add(hash((line % 1_000, "row")), line, line)
    assert 1 / 128 <= seen.share <= 1 / 8
    count, first = seen.repeats()
    assert first is not None and first.line - first.earlier == 1_000
    assert 0 < count <= 1_000 * seen.share * 4


def test_repeated_rows_are_one_warning_with_the_first_place() -> None:
    other = talk({**USER, "name": None}, answer=2)
    report = validate(file_of(talk(USER), talk(USER, ANSWER, USER), other, talk(USER, answer=1)))
    [warning] = report.warnings
    assert (warning.rule, warning.line, warning.count) == ("duplicate_row", 3, 2)
    assert "line 1, and 1 more row repeats an earlier one." in warning.message


FIELDS = FieldCheck([("answer",), ("meta", "unit"), ("steps", 1)])


@pytest.mark.parametrize(
    ("row", "path", "said"),
    [
        (talk(USER, answr=1, meta={"unit": None}, steps=[1, 2]), "/answer", "item.answr"),
        (talk(USER, answer=1, meta={"Unit": 1}, steps=[1, 2]), "/meta/unit", "item.meta.Unit"),
        (talk(USER, answer=1, meta="m", steps=[1, 2]), "/meta/unit", "item.meta.unit"),
        (talk(USER, answer=1, meta={"unit": 1}, steps=[1]), "/steps/1", "item.steps[1]"),
        (talk(USER, answer=1, meta={"unit": 1}, steps={"1": 1}), "/steps/1", "item.steps[1]"),
    ],
)
def test_fields_that_the_grader_reads(row: dict[str, Any], path: str, said: str) -> None:
    full = talk(USER, ANSWER, USER, answer=None, meta={"unit": "m"}, steps=[1, 2])
    report = validate(file_of(full, row), checks=[FIELDS])
    [error] = report.errors
    assert (error.rule, error.line, error.path) == ("missing_field", 2, path)
    assert said in error.message
    assert examine(file_of(full, row), [FIELDS]).errors == report.errors


def test_the_conversation_is_no_field_of_a_grader() -> None:
    [error] = validate(file_of(talk(USER)), checks=[FieldCheck([("messages", 0)])]).errors
    assert "no part of item" in error.message


def test_rows_longer_than_the_window() -> None:
    counted = []

    def count(row: dict[str, Any]) -> int:
        counted.append(row["n"])
        return len(row["messages"][0]["content"])

    check = LengthCheck(count, 10, at_most=lambda row: row["n"], room=", which leaves room")
    rows = [talk({**USER, "content": "x" * n}, n=n) for n in (5, 10, 11, 12)]
    report = validate(file_of(*rows), checks=[check])
    assert [(e.rule, e.line) for e in report.errors] == [("too_many_tokens", n) for n in (3, 4)]
    assert "11 tokens; 10 are allowed, which leaves room." in report.errors[0].message
    assert (counted, check.longest) == ([11, 12], 12)


@property_test
@given(
    row=st.dictionaries(st.text(max_size=3), json_values), path=st.lists(st.text() | st.integers())
)
def test_no_row_breaks_the_check_of_fields(row: dict[str, Any], path: list[Any]) -> None:
    check = FieldCheck([path] if path else [])
    assert len(list(check(row))) <= 1
