"""Rows that are made to break the report, or to cost too much."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from rft.dataset import KINDS, iter_placed_rows, lines, validate
from rft.dataset.lines import BOM
from rft.dataset.nearest import nearest

from tests.client.rows import USER, file_of, talk

HALF = "\ud83d"


class Dribble(io.BytesIO):
    """Gives few bytes at a time."""

    def __init__(self, data: bytes, chunk: int) -> None:
        super().__init__(data)
        self._chunk = chunk

    def read(self, _size: int | None = -1) -> bytes:
        return super().read(self._chunk)


@pytest.mark.parametrize("kind", [*KINDS, "auto"])
@pytest.mark.parametrize(
    "row",
    [
        {f"messages{HALF}": []},
        {"input": {f"messages{HALF}": []}},
        {f"input{HALF}": {}, f"preferred_output{HALF}": []},
        talk({f"role{HALF}": "user", "content": "q"}),
        talk({"role": f"user{HALF}", "content": "q"}),
        talk({**USER, f"contents{HALF}": "q"}),
        talk({"role": "user", "content": [{"type": f"text{HALF}"}]}),
        talk({"role": "tool", "tool_call_id": HALF, "content": "q"}),
        talk(USER, tools=[{"type": "function", "function": {"name": HALF}}]),
    ],
)
def test_reports_on_lone_surrogates_can_be_sent(row: dict[str, Any], kind: str) -> None:
    report = validate(file_of(row), kind)
    assert "lone_surrogate" in report.error_counts
    json.dumps(report.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize("control", ["\0", "\n", "\x1b", "\x85", "\u2028"])
def test_reports_hold_no_control_characters(control: str) -> None:
    key = f"a{control}b"
    data = json.dumps(talk({"role": key, "content": control, key: 1}, **{key: "\0"}))
    twice = f'{{{json.dumps(key)}: 1, {json.dumps(key)}: "\\u0000"}}'
    for kind in KINDS:
        report = validate(io.BytesIO(f"{data}\n{twice}\n".encode()), kind)
        assert {"nul_character", "duplicate_key"} <= report.error_counts.keys()
        assert not any(control in f"{p.path}{p.message}" for p in report.errors + report.warnings)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "r" * 10**6, "content": "q"}]},
        {"messages": [{**USER, "c" * 10**6: "q"}]},
        {"m" * 10**6: []},
    ],
)
def test_long_names_are_compared_in_bounded_memory(row: dict[str, Any]) -> None:
    file = file_of(row)
    tracemalloc.start()
    validate(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_the_nearest_name_is_found_whatever_its_case() -> None:
    assert nearest("ANSWER", ["other", "answers"]) == "answers"
    assert nearest("colour", ["answer"]) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "{",
        "{'a': 1}",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": }',
        '{"a": None}',
        '{"a": 1},',
        '{"a": 1,}',
        '{"a": "b',
        '{"a": "b\tc"}',
        '{"a": "\\x41"}',
        '{"a": "\\u12"}',
        "[1, ]",
    ],
)
def test_broken_json_is_told_in_words_of_our_own(line: str) -> None:
    [problem] = validate(io.BytesIO(b"{}\n" + line.encode() + b"]\n")).errors[1:]
    assert problem.rule == "invalid_json"
    assert problem.message.startswith("Not valid JSON: a") or "something follows" in problem.message
    assert "column" in problem.message
    assert "Expecting" not in problem.message


@pytest.mark.parametrize("first", [BOM, BOM[:1]])
def test_a_byte_order_mark_takes_no_room_in_the_first_line(
    first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = file_of(talk(USER)).getvalue().rstrip()
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", len(row))

    data, chunk = BOM + row + b"\n" + row, len(first)
    assert validate(Dribble(data, chunk)).ok
    places = [(placed.line, placed.offset) for placed in iter_placed_rows(Dribble(data, chunk))]
    assert places == [(1, len(BOM)), (2, len(BOM) + len(row) + 1)]


def test_rows_by_carriage_returns_are_no_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 200)
    row = file_of(talk(USER)).getvalue().rstrip()
    long = file_of(talk({"role": "user", "content": "q" * 200})).getvalue()
    report = validate(Dribble((row + b"\r") * 9 + b"\n" + long, 50))
    told = [(problem.line, problem.rule) for problem in report.errors]
    assert told == [(1, "carriage_returns"), (2, "max_line_bytes")]
