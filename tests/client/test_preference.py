"""Rows of a prompt with a better and a worse answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rft.dataset import Report, kind_of, validate

from tests.client.rows import ANSWER, TOOL, USER, call, calling, file_of, talk
from tests.properties import json_values, property_test

BETTER, WORSE = {**ANSWER, "content": "better"}, {**ANSWER, "content": "worse"}
PAIR = {"input": talk(USER), "preferred_output": [BETTER], "non_preferred_output": [WORSE]}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def check(*rows: Any) -> Report:
    return validate(file_of(*rows), "preference")


def without(field: str, **others: Any) -> dict[str, Any]:
    return {key: value for key, value in PAIR.items() if key != field} | others


def test_good_pairs() -> None:
    parts = [{"type": "text", "text": "better"}]
    tools = talk(USER, tools=[TOOL], parallel_tool_calls=True)
    report = check(
        PAIR, {**PAIR, "input": tools, "preferred_output": [{**BETTER, "content": parts}]}
    )
    assert report.ok
    assert report.warning_counts == {"duplicate_row": 1} or not report.warnings
    assert report.needs == {"tools": 2}


@pytest.mark.parametrize(
    ("rule", "path", "row"),
    [
        ("input_required", "/input", without("input")),
        ("input_required", "/input", {**PAIR, "input": [USER]}),
        ("messages_required", "/input/messages", {**PAIR, "input": {}}),
        ("last_message_not_user", "/input/messages/1/role", {**PAIR, "input": talk(USER, ANSWER)}),
        ("unknown_role", "/input/messages/0/role", {**PAIR, "input": talk({"role": "human"})}),
        ("output_required", "/preferred_output", without("preferred_output")),
        ("output_required", "/preferred_output", {**PAIR, "preferred_output": "better"}),
        ("output_required", "/preferred_output", {**PAIR, "preferred_output": []}),
        ("output_required", "/preferred_output", {**PAIR, "preferred_output": [BETTER, BETTER]}),
        ("message_not_object", "/preferred_output/0", {**PAIR, "preferred_output": ["better"]}),
        ("output_not_assistant", "/preferred_output/0/role", {**PAIR, "preferred_output": [USER]}),
        (
            "target_not_text",
            "/preferred_output/0/tool_calls",
            {**PAIR, "preferred_output": [calling(call())]},
        ),
        (
            "empty_target",
            "/preferred_output/0/content",
            {**PAIR, "preferred_output": [{**ANSWER, "content": " \n"}]},
        ),
        (
            "content_required",
            "/preferred_output/0/content",
            {**PAIR, "preferred_output": [{**ANSWER, "content": None}]},
        ),
        (
            "image_not_in_user",
            "/non_preferred_output/0/content/0",
            {**PAIR, "non_preferred_output": [{**ANSWER, "content": [IMAGE]}]},
        ),
        ("outputs_equal", "/non_preferred_output", {**PAIR, "non_preferred_output": [BETTER]}),
    ],
)
def test_wrong_pair(rule: str, path: str, row: dict[str, Any]) -> None:
    report = check(PAIR, row)
    assert (2, rule, path) in {(p.line, p.rule, p.path) for p in report.errors}
    assert report.valid_rows == 1


@pytest.mark.parametrize(
    ("row", "other"),
    [
        (without("preferred_output", preferred_completion=[BETTER]), "preferred_completion"),
        (without("non_preferred_output", rejected="worse"), "rejected"),
        (without("input", prompt="q"), "prompt"),
    ],
)
def test_fields_of_other_tools_are_pointed_out(row: dict[str, Any], other: str) -> None:
    [error] = check(row).errors
    assert f"'{other}'" in error.message


def test_fields_without_effect_bring_warnings() -> None:
    row = {**PAIR, "answer": 1, "input": talk(USER, tols=[]), "note": None}
    row["preferred_output"] = [{**BETTER, "weight": 1}]
    report = check(row)
    assert report.ok
    assert {w.path for w in report.warnings if w.rule == "unused_field"} == {
        "/answer",
        "/input/tols",
        "/preferred_output/0/weight",
    }


def test_repeated_pairs_are_found_and_other_answers_are_no_repetition() -> None:
    assert check(PAIR, PAIR).warning_counts == {"duplicate_row": 1}
    other = {**PAIR, "non_preferred_output": [{**ANSWER, "content": "bad"}]}
    assert not check(PAIR, other).warnings


def test_images_are_a_need() -> None:
    row = {**PAIR, "input": talk({"role": "user", "content": [IMAGE]})}
    assert check(row).needs == {"image": 1}


def test_pairs_are_told_from_other_rows() -> None:
    assert kind_of(PAIR) == "preference"
    assert kind_of(without("input", chosen=1)) == "preference"
    assert kind_of(talk(USER, ANSWER)) == "supervised"
    assert kind_of({**talk(USER), "input": 1}) == kind_of({}) == "reinforcement"


OUTPUT = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "weight", "tool_calls"]), json_values)
    | st.sampled_from([BETTER, WORSE]),
    max_size=2,
)


@property_test
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "input": json_values | st.just(talk(USER)) | st.just(talk("q", tools=5)),
            "preferred_output": OUTPUT | json_values,
            "non_preferred_output": OUTPUT | json_values,
            "x": json_values,
        },
    )
)
def test_no_pair_breaks_the_validator(row: dict[str, Any]) -> None:
    report = check(row)
    assert report.ok == (report.valid_rows == 1)
    assert Report.from_dict(report.to_dict()) == report
