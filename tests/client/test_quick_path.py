"""The quick way through a line accepts only what the exact way has nothing to say about."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rft.dataset import KINDS, Report, Validator, quickjson, validate
from rft.dataset.conversation import check_row, needs_of
from rft.dataset.fingerprint import fingerprint
from rft.dataset.plain import plain
from rft.dataset.strictjson import parse
from rft.dataset.tools import KnownTools

from tests.properties import json_values, property_test

PARSERS = [quickjson.fastest, quickjson.decode_standard]

#: What a hostile line is made of: every byte that JSON gives a meaning, and some it refuses.
PIECES = st.sampled_from(
    [
        *'{}[]":,\\ \t\r\0\x0b/\x7f\u0085\u2028\ufeff\ufffeé🙂',
        *("\\u", "\\u0000", "\\ud83d", "\\ude00", '\\"', '\\\\"', "d83d"),
        *('"a"', '"a":', '"a" :', '":"', '"\\u0061":', '{"a":1,"a":2}', '{"b":{"a":1}}'),
        *("1", "-0", "1e999", "1E5", "01", "1.", ".5", "9" * 308, "9" * 309, "1" * 400),
        *("NaN", "-Infinity", "true", "null", "nul", "[" * 70 + "]" * 70),
    ]
)
LINES = st.lists(PIECES, max_size=12).map("".join)


def exactly(data: bytes) -> tuple[Any, bool]:
    """The exact parser's row, and whether it has anything to say."""
    try:
        row, findings = parse(data.decode())
    except UnicodeDecodeError:
        return None, True
    return row, bool(findings) or not isinstance(row, dict)


def quickly(data: bytes, parser: Callable[[bytes], Any]) -> dict[str, Any] | None:
    """The row that the quick path is sure of."""
    row = quickjson.decode(data, parser)
    if row is None:
        return None
    try:
        return row if quickjson.certain(data, quickjson.count_strings(row)) else None
    except quickjson.Doubt:
        return None


def compare(data: bytes) -> None:
    exact, trouble = exactly(data)
    for parser in PARSERS:
        row = quickly(data, parser)
        assert row is None or (not trouble and row == exact), (data, parser)


@property_test
@given(line=LINES, holder=st.sampled_from(["%", '{"k":%}', '{"a":[%],"x":":"}', "{%}"]))
@example(line='"a":1,"a":2', holder="{%}")
@example(line='"a" :1,"a":":"', holder="{%}")
@example(line='"a\\\\":1,"a\\\\":1', holder="{%}")
@example(line='"a\\\\":1,"a\\\\":1,"b":":","c":":"', holder="{%}")
@example(line='"a\\":":1,"a\\":":1', holder="{%}")
@example(line='"a"\t:1,"a":":"', holder="{%}")
@example(line='"\\\\ud83d\\ude00"', holder='{"k":%}')
@example(line='"\\ud83d\\ude00"', holder='{"k":%}')
def test_quick_parser_is_never_more_lenient(line: str, holder: str) -> None:
    compare(holder.replace("%", line).encode())


@property_test
@given(st.dictionaries(st.text(), json_values), st.data())
def test_quick_parser_on_damaged_rows(row: dict[str, Any], data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from([None, (",", ":"), (" , ", " : "), (",\t", "\t:")]))
    text = json.dumps(row, separators=separators, ensure_ascii=data.draw(st.booleans()))
    line = bytearray(text.encode("utf-8", "surrogatepass"))
    compare(bytes(line))
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] = data.draw(st.integers(0, 255))
    compare(bytes(line))
    del line[place]
    compare(bytes(line))


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["c", "d", "", 5]),
        "type": st.sampled_from(["function", "function", "f"]),
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["f", "f", "g", "a b", 5]),
                "arguments": st.sampled_from(["{}", '{"a": "\\ud83d"}', "[]", "{", "", 5, {}]),
            }
        ),
    },
    optional={"index": st.just(0)},
)
ROLES = ["user", "assistant", "assistant", "system", "developer", "tool", "tool", "human", 5]
USUAL_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(ROLES),
        "content": st.sampled_from(["q", "a: b", "", " ", "\u3000", "{}", None, 5, []]),
    },
    optional={
        "name": st.sampled_from(["n", None, 5]),
        "weight": st.sampled_from([0, 1, True]),
        "tool_calls": st.lists(CALL, max_size=2) | st.none(),
        "tool_call_id": st.sampled_from(["c", "d", 5]),
    },
)
GOOD_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
GOOD_MESSAGE = st.sampled_from(
    [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "a", "weight": 0},
        {"role": "assistant", "content": "a", "weight": 1},
        {"role": "assistant", "content": None, "tool_calls": [GOOD_CALL]},
        {"role": "assistant", "content": "", "tool_calls": [GOOD_CALL, {**GOOD_CALL, "id": "d"}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "tool", "tool_call_id": "d", "content": "x"},
    ]
)
USUAL_ROW = st.fixed_dictionaries(
    {"messages": st.lists(GOOD_MESSAGE, max_size=6) | st.lists(USUAL_MESSAGE, max_size=3)},
    optional={
        "tools": st.sampled_from([[TOOL], [TOOL], [TOOL, TOOL], None, [], 5]),
        "answer": json_values,
        "sample": st.just(1),
        "functions": st.just([]),
    },
)


@property_test
@given(row=USUAL_ROW, kind=st.sampled_from([k for k in KINDS if k != "preference"]))
def test_of_plain_rows_the_rules_say_nothing(row: dict[str, Any], kind: Any) -> None:
    try:
        found = plain(row, kind, KnownTools())
    except quickjson.Doubt:
        return
    if found is not None:
        assert list(check_row(row, kind, KnownTools())) == []
        assert needs_of(row) == (["tools"] if found.tools else [])
        assert fingerprint(row) == hash(found.talk)
        assert found.strings == quickjson.count_strings(row)


def test_ordinary_rows_are_plain() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [GOOD_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        {"role": "user", "content": "r"},
    ]
    row = {"messages": messages, "tools": [TOOL], "answer": "a", "more": {"n": [1, "b"]}}
    assert plain(row, "reinforcement", KnownTools()) is not None
    answers = [{"role": "assistant", "content": "a", "weight": weight} for weight in (0, 1)]
    for kind in ("supervised", "warm_start"):
        row = {"messages": [*messages, answers[0], messages[1], answers[1]], "tools": [TOOL]}
        assert plain(row, kind, KnownTools()) is not None


def without_quick_path(data: bytes, kind: str, monkeypatch: pytest.MonkeyPatch) -> Report:
    with monkeypatch.context() as patch:
        patch.setattr(Validator, "_take_quickly", lambda _self, _data: False)
        return validate(io.BytesIO(data), kind)


@property_test
@given(
    rows=st.lists(USUAL_ROW | st.dictionaries(st.text(), json_values), max_size=6),
    kind=st.sampled_from([*KINDS, "auto"]),
    ascii_only=st.booleans(),
)
def test_reports_are_the_same_without_the_quick_path(
    rows: list[Any], kind: str, ascii_only: bool
) -> None:
    lines = [json.dumps(row, ensure_ascii=ascii_only) for row in rows]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    quick = validate(io.BytesIO(data), kind)
    assert quick == without_quick_path(data, kind, pytest.MonkeyPatch())


@pytest.mark.parametrize("parser", PARSERS)
def test_ordinary_lines_take_the_quick_path(parser: Callable[[bytes], Any]) -> None:
    arguments = json.dumps({"city": "Oslo: centre"})
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    row = {
        "messages": [
            {"role": "system", "content": "Note: be brief.\nAt 12:30, see https://example.org/ü🙂"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "user", "content": "q"},
        ],
        "answer": {"n": 1.5, "big": 2**70, "more": ["a", {"b": None}]},
    }
    for separators in (None, (",", ":")):
        for ascii_only in (True, False):
            text = json.dumps(row, separators=separators, ensure_ascii=ascii_only)
            assert quickly(text.encode(), parser) == row


def test_validator_works_without_the_optional_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"messages": [{"role": "user", "content": "q\ud83d"}], "x": 1e3}
    data = b"\n".join([json.dumps(row).encode(), b'{"a":NaN}', b'{"a":1,"a":2}', b"{"])
    fast = validate(io.BytesIO(data))
    monkeypatch.setattr(quickjson, "fastest", quickjson.decode_standard)
    assert validate(io.BytesIO(data)) == fast
