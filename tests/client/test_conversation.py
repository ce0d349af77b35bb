"""Roles, tool calls and fields: what other tools write, and what is easily forgotten."""

import io
from typing import Any

import pytest
from rft.dataset import Report, validate

from tests.client.rows import ANSWER, TOOL, USER, call, calling, file_of, result, talk


def check(row: dict[str, Any], kind: str = "reinforcement") -> Report:
    return validate(file_of(row), kind)


def warned(report: Report) -> list[tuple[str, str]]:
    assert report.ok, report.errors
    return [(warning.rule, warning.path) for warning in report.warnings]


def test_nulls_of_typed_clients_count_as_absent() -> None:
    nulls = dict.fromkeys(["name", "refusal", "tool_calls", "function_call", "weight", "audio"])
    row = talk({**nulls, **ANSWER}, {**nulls, **USER}, tools=None)
    assert warned(check(row)) == []
    assert warned(check(talk({**nulls, **USER}, {**nulls, **ANSWER}), "warm_start")) == []
    assert check({"messages": None}).errors[0].rule == "messages_required"


@pytest.mark.parametrize(
    ("role", "meant"),
    [
        ("human", "user"),
        ("gpt", "assistant"),
        ("User", "user"),
        ("function", "tool"),
        ("sytem", "system"),
    ],
)
def test_roles_of_other_tools_are_pointed_out(role: str, meant: str) -> None:
    [error] = check(talk({"role": role, "content": "q"}, USER)).errors
    assert error.rule == "unknown_role"
    assert f"did you mean {meant}?" in error.message


def test_older_forms_of_tool_calls_are_refused_not_dropped() -> None:
    message = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    errors = {(e.rule, e.path) for e in check(talk({**message, "content": "a"}, USER)).errors}
    assert errors == {("invalid_tool_calls", "/messages/0/function_call")}


def test_field_for_the_messages_of_other_tools_is_pointed_out() -> None:
    for field in ("conversations", "mesages", "prompt"):
        [error] = check({field: [USER]}).errors
        assert error.rule == "messages_required" and f"'{field}'" in error.message


@pytest.mark.parametrize("field", ["sample", "item", "functions", "tool_choice", "response_format"])
def test_fields_that_promise_more_are_pointed_out(field: str) -> None:
    assert warned(check(talk(USER, **{field: 1}))) == [("misleading_field", f"/{field}")]


@pytest.mark.parametrize("content", ["", " \n", "\u3000"])
def test_blank_prompt_is_a_warning(content: str) -> None:
    row = talk({"role": "user", "content": content})
    assert warned(check(row)) == [("empty_prompt", "/messages/0/content")]


def test_calls_without_a_result_are_warned_about_but_for_the_last_message() -> None:
    both = calling(call(), call(id="d"))
    unanswered = ("unanswered_tool_call", "/messages/0/tool_calls/1")
    assert warned(check(talk(both, result("c"), USER, tools=[TOOL]))) == [unanswered]
    assert warned(check(talk(both, result("d"), result("c"), USER, tools=[TOOL]))) == []
    assert warned(check(talk(USER, both, tools=[TOOL]), "supervised")) == []


def test_ids_may_come_again_once_they_are_answered() -> None:
    row = talk(calling(call()), result(), calling(call()), result(), USER, tools=[TOOL])
    assert warned(check(row)) == []


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("/messages/0/tool_calls/1/id", talk(calling(call(), call()), USER, tools=[TOOL])),
        ("/messages/0/tool_calls", talk({**calling(), "content": "a"}, USER)),
        ("/messages/0/tool_calls/0/id", talk(calling(call(id="")), USER, tools=[TOOL])),
    ],
)
def test_wrong_calls(path: str, row: dict[str, Any]) -> None:
    [error] = check(row).errors
    assert (error.rule, error.path) == ("invalid_tool_calls", path)


@pytest.mark.parametrize(
    ("path", "tools"),
    [
        ("/tools/1/function/name", [TOOL, TOOL]),
        ("/tools/0/function/parameters", [{**TOOL, "function": {"name": "f", "parameters": []}}]),
        (
            "/tools/0/function/parameters",
            [{**TOOL, "function": {"name": "f", "parameters": {"type": "string"}}}],
        ),
        ("/tools/0/function/description", [{**TOOL, "function": {"name": "f", "description": 5}}]),
    ],
)
def test_wrong_tools(path: str, tools: list[Any]) -> None:
    report = validate(file_of(talk(USER, tools=tools), talk(ANSWER, USER, tools=tools)))
    assert [(e.line, e.rule, e.path) for e in report.errors] == [
        (line, "invalid_tools", path) for line in (1, 2)
    ]


def test_all_errors_of_a_row_are_told_at_once() -> None:
    data = file_of(talk({"role": "human"}, {**USER, "content": 5}, tools=5)).getvalue()
    data = data.replace(b"5}]", b'5, "n": NaN, "content": 6}]')
    report = validate(io.BytesIO(data))
    assert set(report.error_counts) == {
        "duplicate_key",
        "invalid_content",
        "invalid_tools",
        "non_finite_number",
        "unknown_role",
    }


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize("content", ["", " \n", parts(""), parts(" ")])
def test_a_blank_answer_is_refused_where_it_is_learnt(content: Any) -> None:
    blank = {"role": "assistant", "content": content}
    for kind in ("supervised", "warm_start"):
        assert validate(file_of(talk(USER, blank)), kind).error_counts == {"empty_target": 1}
    assert "empty_target" in validate(file_of(talk(USER, blank, USER, ANSWER)), "sft").error_counts
    for kind, rest in (("warm_start", [USER, ANSWER]), ("reinforcement", [USER])):
        report = validate(file_of(talk(USER, blank, *rest)), kind)
        assert report.ok
        assert report.warning_counts == {"empty_assistant": 1}


def test_a_prompt_of_blank_parts_is_a_warning_but_an_image_says_something() -> None:
    prompt = {"role": "user", "content": parts(" ")}
    assert validate(file_of(talk(prompt))).warning_counts == {"empty_prompt": 1}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert not validate(file_of(talk({"role": "user", "content": [image]}))).warnings
