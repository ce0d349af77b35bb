"""Hints: what a comparison failed for, when it was little."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import parse_grader
from graders.lint import hints, unicode_hint
from tests.graders.examples import json_schema, multi, string_check


def hint(text: str, reference: str, **changes: Any) -> list[str]:
    spec = parse_grader(string_check(**changes))
    return hints(spec, {"output_text": text}, {"answer": reference})


@pytest.mark.parametrize(
    ("text", "reference", "form"),
    [
        ("cafe\u0301", "caf\u00e9", "NFC"),
        ("\u1100\u1161", "\uac00", "NFC"),
        ("\u212b", "\u00c5", "NFC"),
        ("1\u00a0kg", "1 kg", "NFKC"),
        ("１２", "12", "NFKC"),
        ("ﬁne", "fine", "NFKC"),
        ("x²", "x2", "NFKC"),
    ],
)
def test_unicode_hint(text: str, reference: str, form: str) -> None:
    wanted = f"differs only by Unicode normalisation ({form})"
    assert unicode_hint(text, reference) == wanted
    assert unicode_hint(reference, text) == wanted


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a", "a"),
        ("a", "b"),
        ("A", "a"),
        ("a ", "a"),
        ("straße", "strasse"),
        ("İ", "i"),
        ("ı", "i"),
    ],
)
def test_no_unicode_hint(text: str, reference: str) -> None:
    assert unicode_hint(text, reference) is None


@pytest.mark.parametrize(
    ("text", "reference", "by"),
    [
        ("Paris", "paris", "upper and lower case"),
        ("STRASSE", "straße", "upper and lower case"),
        ("Paris\n", "Paris", "white space"),
        ("New  York", "New York", "white space"),
        ('"Paris"', "Paris", "surrounding quotes"),
        ("„Paris“", "Paris", "surrounding quotes"),
        ("`Paris`", "Paris", "surrounding quotes"),
        ('```json\n{"a": 1}\n```', '{"a": 1}', "a markdown fence"),
        ("Paris.", "Paris", "a full stop"),
        ("はい。", "はい", "a full stop"),
        ("cafe\u0301", "caf\u00e9", "Unicode normalisation (NFC)"),
        ("ＰＡＲＩＳ", "paris", "Unicode normalisation (NFKC) and upper and lower case"),
        ('"paris".', "Paris", "upper and lower case and surrounding quotes and a full stop"),
    ],
)
def test_what_eq_differs_by(text: str, reference: str, by: str) -> None:
    assert hint(text, reference) == [f"exact: the input differs from the reference only by {by}."]


def test_containing() -> None:
    [found] = hint("It is in cafe\u0301 Central", "caf\u00e9", operation="like")
    assert found.startswith("exact: the input does not contain the reference only by Unicode")
    assert hint("in PARIS", "paris", operation="ilike") == []


@pytest.mark.parametrize(
    ("text", "reference", "changes"),
    [
        ("Paris", "Paris", {}),
        ("Paris", "Rome", {}),
        ("", "Rome", {}),
        ("Paris", "Paris", {"operation": "ne"}),
        ("Paris", "paris", {"operation": "ne"}),
        ("cafe\u0301", "caf\u00e9", {"normalize": "nfc"}),
        ("Paris", "paris", {"input": "{{item.none}}"}),
        ("P" * 30_000, "p" * 30_000, {}),
    ],
)
def test_no_hint(text: str, reference: str, changes: dict[str, Any]) -> None:
    assert hint(text, reference, **changes) == []


def test_children_of_a_multi_are_looked_at_and_others_are_not() -> None:
    graders = {
        "city": string_check(),
        "form": json_schema({"type": "string"}),
        "land": string_check(reference="{{item.land}}"),
    }
    spec = parse_grader(multi(graders, "city + form + land"))
    found = hints(spec, {"output_text": "Paris "}, {"answer": "Paris", "land": "France"})
    assert found == ["city: the input differs from the reference only by white space."]


@given(st.text(max_size=30), st.text(max_size=30))
def test_hints_are_symmetric_for_eq_and_right(text: str, reference: str) -> None:
    found = hint(text, reference)
    assert found == hint(reference, text)
    assert not (found and text == reference)
    if unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", reference) != text:
        assert text == reference or "NFC" in found[0]
