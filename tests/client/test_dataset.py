"""The validator's rules, limits and report."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rft.dataset import RULES, DatasetError, iter_rows, validate
from rft.dataset.report import MAX_LISTED

from tests.client.rows import ANSWER, TOOL, USER, call, calling, file_of, result, talk
from tests.properties import json_values, property_test


def with_field(member: bytes) -> bytes:
    return b'{"messages":[{"role":"user","content":"q"}],' + member + b"}"


WRONG_ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("messages_required", "/messages", {"prompt": "q"}),
    ("messages_required", "/messages", {"messages": []}),
    ("messages_required", "/messages", {"messages": 5}),
    ("message_not_object", "/messages/0", talk("q", USER)),
    ("unknown_role", "/messages/0/role", talk({"role": "human", "content": "q"}, USER)),
    ("unknown_role", "/messages/0/role", talk({"role": ["user"], "content": "q"}, USER)),
    ("content_required", "/messages/0/content", talk({"role": "user"})),
    ("invalid_content", "/messages/0/content", talk({"role": "user", "content": 5})),
    ("invalid_content", "/messages/0/content", talk({"role": "user", "content": []})),
    (
        "invalid_content",
        "/messages/0/content/0/type",
        talk({"role": "user", "content": [{"type": "video"}]}),
    ),
    (
        "invalid_content",
        "/messages/0/content/0/text",
        talk({"role": "user", "content": [{"type": "text"}]}),
    ),
    (
        "image_not_in_user",
        "/messages/0/content/0",
        talk(
            {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, USER
        ),
    ),
    ("invalid_name", "/messages/0/name", talk({**USER, "name": 5})),
    ("invalid_weight", "/messages/0/weight", talk({**ANSWER, "weight": 0.5}, USER)),
    ("invalid_weight", "/messages/0/weight", talk({**USER, "weight": 1})),
    ("invalid_tools", "/tools", talk(USER, tools={})),
    ("invalid_tools", "/tools/0", talk(USER, tools=[{"type": "function"}])),
    (
        "invalid_tools",
        "/tools/0/function/name",
        talk(USER, tools=[{"type": "function", "function": {"name": "a b"}}]),
    ),
    ("invalid_tool_calls", "/messages/0/tool_calls", talk({**USER, "tool_calls": [call()]})),
    ("invalid_tool_calls", "/messages/0/tool_calls/0", talk(calling({}), USER, tools=[TOOL])),
    (
        "invalid_tool_calls",
        "/messages/0/tool_calls/0/id",
        talk(calling(call(id=None)), USER, tools=[TOOL]),
    ),
    (
        "invalid_tool_calls",
        "/messages/0/tool_calls/0/function/arguments",
        talk(calling(call(function={"name": "f", "arguments": {}})), USER, tools=[TOOL]),
    ),
    ("unknown_tool_call_id", "/messages/0", talk({"role": "tool", "content": "x"}, USER)),
]


@pytest.mark.parametrize(("rule", "path", "row"), WRONG_ROWS)
def test_wrong_row(rule: str, path: str, row: dict[str, Any]) -> None:
    report = validate(file_of(row))
    assert (rule, path) in {(p.rule, p.path) for p in report.errors}
    assert report.valid_rows == 0


@pytest.mark.parametrize(
    ("rule", "messages"),
    [
        ("last_message_not_assistant", [USER]),
        ("empty_target", [USER, {"role": "assistant", "content": ""}]),
        ("nothing_to_learn", [USER, {**ANSWER, "weight": 0}]),
        ("answer_without_prompt", [ANSWER]),
    ],
)
@pytest.mark.parametrize("kind", ["supervised", "warm_start"])
def test_wrong_supervised_row(rule: str, messages: list[Any], kind: Any) -> None:
    assert [p.rule for p in validate(file_of(talk(*messages)), kind).errors] == [rule]


TEXT_PART = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("rule", "path", "last"),
    [
        ("target_not_text", "tool_calls", calling(call())),
        ("target_not_text", "tool_calls", {**calling(call()), "content": "I look it up."}),
        ("target_not_text", "tool_calls", {**calling(call()), "content": ""}),
        ("target_not_text", "content", {"role": "assistant", "content": None, "refusal": "No."}),
        ("empty_target", "content", {"role": "assistant", "content": [{**TEXT_PART, "text": ""}]}),
        ("nothing_to_learn", "weight", {**ANSWER, "weight": 0}),
        ("nothing_to_learn", "weight", {**calling(call()), "weight": 0}),
    ],
)
def test_warm_start_learns_the_text_of_the_last_message(rule: str, path: str, last: Any) -> None:
    # An answer before the last message does not make up for it: only the last one is learnt.
    row = talk(USER, ANSWER, USER, last, tools=[TOOL])
    first = talk(USER, ANSWER)
    [problem] = validate(file_of(first, row), "warm_start").errors
    assert (problem.rule, problem.line, problem.path) == (rule, 2, f"/messages/3/{path}")
    assert problem.mend == RULES[rule].mend


def test_warm_start_takes_text_parts_and_tools_before_the_last_message() -> None:
    answer = {"role": "assistant", "content": [TEXT_PART, TEXT_PART], "weight": 1}
    row = talk(USER, {**calling(call()), "weight": 0}, result(), answer, tools=[TOOL])
    report = validate(file_of(row), "warm_start")
    assert report.ok and not report.warnings


def test_supervised_rows_may_end_with_a_tool_call() -> None:
    row = talk(USER, calling(call()), tools=[TOOL])
    assert validate(file_of(row), "supervised").ok


def test_an_answer_is_learnt_after_something() -> None:
    """A model cannot be shown an empty conversation, and so cannot learn what follows on one."""
    greeting = talk(ANSWER, USER, ANSWER)
    [problem] = validate(file_of(greeting), "supervised").errors
    assert (problem.rule, problem.path) == ("answer_without_prompt", "/messages/0")
    unlearnt = talk({**ANSWER, "weight": 0}, USER, ANSWER)
    assert validate(file_of(unlearnt), "supervised").ok
    assert validate(file_of(greeting), "warm_start").ok


def test_weight_zero_excuses_an_empty_answer() -> None:
    messages = [USER, {"role": "assistant", "content": "", "weight": 0}, USER, ANSWER]
    report = validate(file_of(talk(*messages)), "supervised")
    assert report.ok
    assert [w.rule for w in report.warnings] == ["empty_assistant"]


def test_fields_without_effect_are_warned_about_once_each() -> None:
    rows = [talk(USER, ANSWER, answer=str(i), note="n") for i in range(3)]
    report = validate(file_of(*rows), "supervised")
    assert report.ok
    unused = {(w.path, w.count) for w in report.warnings if w.rule == "unused_field"}
    assert unused == {("/answer", 3), ("/note", 3)}
    assert "unused_field" not in validate(file_of(*rows), "warm_start").warning_counts


def test_misspelt_message_field_is_pointed_out() -> None:
    [warning] = validate(file_of(talk({**ANSWER, "wieght": 1}, USER))).warnings
    assert (warning.rule, warning.path) == ("unknown_message_field", "/messages/0/wieght")
    assert "weight" in warning.message


def test_undeclared_tool_is_a_warning() -> None:
    report = validate(file_of(talk(calling(call()), result(), USER)))
    assert report.ok
    assert [w.rule for w in report.warnings] == ["undeclared_tool"]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("empty_file", b""),
        ("empty_file", b"\n \n"),
        ("not_an_object", b"[1]"),
        ("not_an_object", b"null"),
        ("invalid_json", b"'a'"),
        ("too_deep", b"[" * 65 + b"]" * 65),
        ("too_deep", b"[" * 100_000),
        ("number_too_large", with_field(b'"a":' + b"1" * 5_000)),
        ("number_too_large", with_field(b'"a":' + b"9" * 309)),
        ("number_too_large", with_field(b'"a":[-' + b"9" * 309 + b"]")),
        ("non_finite_number", with_field(b'"a":[-1e999]')),
        ("nul_character", with_field(b'"a":"\\u0000"')),
        ("lone_surrogate", with_field(b'"\\udc00":1')),
        ("duplicate_key", with_field(b'"a":1,"\\u0061":1')),
        ("duplicate_key", with_field(b'"a" :1,"a":":"')),
        ("too_many_values", with_field(b'"a":[' + b"1," * 1_000_000 + b"1]")),
        ("other_format", b"\x1f\x8b\x08\x00"),
        ("not_utf8", b"\0\0\0{\0\0\0}"),
        ("carriage_returns", b"{}\r{}\r{}\r"),
    ],
)
def test_wrong_line(rule: str, line: bytes) -> None:
    assert [p.rule for p in validate(io.BytesIO(line)).errors] == [rule]


@pytest.mark.parametrize("depth", [63, 64, 500, 900, 5_000])
def test_deep_rows_are_refused_however_often_they_come(depth: int) -> None:
    inner = b"[" * depth + b"]" * depth
    for name in (b"tools", b"messages", b"answer"):
        row = with_field(b'"answer":' + inner)
        row = (
            row.replace(b'"answer"', b'"%s"' % name)
            if name != b"messages"
            else b'{"messages":%s}' % inner
        )
        report = validate(io.BytesIO(row + b"\n" + row))
        assert report.error_counts.get("too_deep", 0) == (2 if depth > 63 else 0)


def test_line_separator_characters_do_not_end_a_line() -> None:
    row = talk({"role": "user", "content": "a\u2028b\u0085c"})
    data = json.dumps(row, ensure_ascii=False).encode()
    assert validate(io.BytesIO(data)).rows == 1
    assert list(iter_rows(io.BytesIO(data))) == [row]


def test_a_thousand_errors_are_counted_and_a_hundred_listed() -> None:
    report = validate(io.BytesIO(b"{}\n" * 1_000))
    assert len(report.errors) == MAX_LISTED
    assert report.error_counts == {"messages_required": 1_000}


def test_the_first_error_of_a_rule_is_listed_however_late_it_comes() -> None:
    report = validate(io.BytesIO(b"{}\n" * 1_000 + b"[]\n[]\n"))
    assert len(report.errors) == MAX_LISTED + 1
    assert (report.errors[-1].rule, report.errors[-1].line) == ("not_an_object", 1_001)


@pytest.mark.parametrize("value", [b'"\\u0000"', b"1e999", b'{"a":1,"a":2}', b"[]", b"{}"])
def test_a_line_full_of_trouble_is_told_in_bounded_memory(value: bytes) -> None:
    tracemalloc.start()
    row = with_field(b'"a":[' + value + (b"," + value) * 100_000 + b"]")
    report = validate(io.BytesIO(row))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(report.error_counts.values()) <= 1_000
    assert peak < 20 * len(row) + 40_000_000


def test_problem_names_line_offset_and_mend() -> None:
    first = json.dumps(talk(USER)).encode() + b"\n"
    report = validate(io.BytesIO(first + b"[]\n"))
    [problem] = report.errors
    assert (problem.line, problem.offset) == (2, len(first))
    assert problem.mend == RULES["not_an_object"].mend
    assert str(problem).startswith("line 2: ")
    assert report.to_dict()["errors"][0]["rule"] == "not_an_object"


def test_path_and_file_object_agree(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(file_of(talk(USER), 5).getvalue())
    with path.open("rb") as stream:
        assert validate(path) == validate(str(path)) == validate(stream)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="reinforcement, supervised, warm_start"):
        validate(io.BytesIO(), "rl")


@pytest.mark.parametrize("data", [b"\xff", b"[]", b"{", b'{"a":NaN}', b"1" * (9 * 2**20)])
def test_reading_rows_stops_at_a_bad_line(data: bytes) -> None:
    rows = iter_rows(io.BytesIO(b"{}\n" + data))
    assert next(rows) == {}
    with pytest.raises(DatasetError, match="Line 2"):
        next(rows)


@property_test
@given(data=st.binary(max_size=300), chunk=st.integers(1, 40))
def test_lines_do_not_depend_on_chunks(data: bytes, chunk: int) -> None:
    class Dribble(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return super().read(chunk)

    assert validate(Dribble(data)) == validate(io.BytesIO(data))


FIELDS = st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "weight", "name", "x"])
VALUES = json_values | st.sampled_from(["user", "assistant", "tool", ""])
MESSAGES = st.lists(st.dictionaries(FIELDS, VALUES) | json_values)


@property_test
@given(
    row=st.fixed_dictionaries(
        {}, optional={"messages": MESSAGES | json_values, "tools": json_values, "a": json_values}
    ),
    kind=st.sampled_from(["reinforcement", "supervised", "warm_start"]),
)
@example(row={"messages": [{"role": "user", "content": "\ud800"}]}, kind="reinforcement")
def test_no_row_breaks_the_validator(row: dict[str, Any], kind: Any) -> None:
    report = validate(file_of(row), kind)
    assert report.ok == (report.valid_rows == report.rows)
    json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False).encode()


@property_test
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_break_the_validator(data: bytes) -> None:
    json.dumps(validate(io.BytesIO(data)).to_dict(), ensure_ascii=False).encode()
