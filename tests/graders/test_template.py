"""Templates and the variables in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.errors import GradeError, TemplateError
from graders.paths import Context, Path
from graders.template import MAX_CHARS, MAX_RENDERED_CHARS, MAX_VARIABLES, Template
from tests.properties import json_values, property_test

ITEM = {
    "answer": "5",
    "flag": True,
    "nothing": None,
    "number": 2.0,
    "nested": {"list": [{"x": 1}, "é"], "my key": "k"},
    "braces": "{{item.answer}}",
    "größe-2": "g",
}
CALL = {"function": {"name": "rain"}}
SAMPLE = {
    "output_text": '{"a": {"b": [10, 20]}}',
    "output_tools": [CALL],
    "choices": [{"message": {"tool_calls": [CALL]}, "finish_reason": "stop"}],
}


def render(text: str, sample: dict[str, Any] = SAMPLE, item: dict[str, Any] = ITEM) -> str:
    return Template.parse(text).render(Context(sample, item))


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a {{item.answer}} b {{ item.answer }}{{item.answer}}", "a 5 b 55"),
        ("{{item.flag}} {{item.nothing}} {{item.number}}", "true null 2.0"),
        ("{{item.nested}}", '{"list":[{"x":1},"é"],"my key":"k"}'),
        ("{{item.nested.list[0].x}}{{item.nested.list[1]}}", "1é"),
        ("{{item.nested[\"my key\"]}}{{item['nested']['my key']}}", "kk"),
        ("{{item.größe-2}}", "g"),
        ("{{item.braces}}", "{{item.answer}}"),
        ("} }} {", "} }} {"),
        ("{{sample.output_json.a.b[1]}}", "20"),
        ("{{sample.output_json}}", '{"a":{"b":[10,20]}}'),
        ("{{sample.choices[0].message.tool_calls[0].function.name}}", "rain"),
        ("{{sample.output_tools[0].function}}", '{"name":"rain"}'),
    ],
)
def test_rendered(text: str, rendered: str) -> None:
    assert render(text) == rendered


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ab {{item.answer", "column 4 is never closed"),
        ("{{}}", "must start with item. or sample."),
        ("{{answer}}", "must start with item. or sample."),
        ("{{items.a}}", "must start with item. or sample."),
        ("{{item}}", "names no field"),
        ("{{item.}}", "cannot be read after 'item'"),
        ("{{item.a b}}", "cannot be read after 'item.a'"),
        ("{{item.a[-1]}}", "cannot be read after 'item.a'"),
        ("{{item.a|upper}}", "cannot be read after 'item.a'"),
        ("{{item.a()}}", "cannot be read after 'item.a'"),
        ("{{sample.output_txt}}", "did you mean sample.output_text?"),
        ("{{item.a}} {{ {{item.b}} }}", r"column 12 is never closed"),
        ("x" * (MAX_CHARS + 1), "may hold"),
        ("{{item.a}}" * (MAX_VARIABLES + 1), f"may hold {MAX_VARIABLES} variables"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        Template.parse(text)


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("{{item.answr}}", "invalid_variable_error", "did you mean item.answer?"),
        ("{{item.nested.lst[0]}}", "invalid_variable_error", "did you mean item.nested.list[0]?"),
        ("{{item.answer[0]}}", "invalid_variable_error", "item.answer[0] is missing"),
        ("{{item.nested.list[2]}}", "invalid_variable_error", "is missing"),
        ("{{item.nested.list.x}}", "invalid_variable_error", "is missing"),
        ("{{sample.output_json.b}}", "sample_variable_error", "sample.output_json.b is missing"),
        ("{{sample.output_tools[1]}}", "sample_variable_error", "is missing"),
    ],
)
def test_absent_variable(text: str, kind: str, detail: str) -> None:
    with pytest.raises(GradeError) as caught:
        render(text)
    assert caught.value.kind == kind
    assert detail in caught.value.detail


@pytest.mark.parametrize(
    "output",
    ["", "no", '{"a":1} ok', '{"a":NaN}', '{"a":1,"a":2}', '["\\ud800"]', "[" * 99 + "]" * 99],
)
def test_output_that_is_not_strict_json(output: str) -> None:
    with pytest.raises(GradeError) as caught:
        render("{{sample.output_json.a}}", sample={"output_text": output})
    assert caught.value.kind == "sample_parse_error"


@pytest.mark.parametrize("output", [None, 5, ["{}"], {"a": 1}, True])
def test_completion_that_is_no_text_is_not_json(output: Any) -> None:
    with pytest.raises(GradeError, match="not pure JSON: it is no text") as caught:
        render("{{sample.output_json.a}}", sample={"output_text": output})
    assert caught.value.kind == "sample_parse_error"


def test_given_output_json_is_taken() -> None:
    assert (
        render("{{sample.output_json}}", sample={"output_json": [1], "output_text": "x"}) == "[1]"
    )


def test_rendered_length_is_bounded() -> None:
    with pytest.raises(GradeError, match="rendered to more than"):
        render("{{item.a}}" * 5, item={"a": "x" * (MAX_RENDERED_CHARS // 4)})


def test_written_path_reads_back() -> None:
    for text in ("item.a.b[0]", 'item["my key"].c', "sample.choices[0].message"):
        assert str(Path.parse(text)) == text


@property_test
@given(
    st.lists(st.sampled_from(["{{", "}}", "item", "sample", ".a", "[0]", " ", "x"])).map("".join)
)
def test_only_template_errors(text: str) -> None:
    try:
        template = Template.parse(text)
    except TemplateError:
        return
    assert all(Path.parse(str(path)) == path for path in template.paths)


@property_test
@given(value=json_values, output=st.text() | st.just('{"a":1}'))
def test_only_grade_errors(value: Any, output: str) -> None:
    context = Context({"output_text": output, "choices": value}, {"a": value})
    for text in ("{{item.a}}", "{{item.a[0]}}", "{{sample.output_json.a}}", "{{sample.choices.a}}"):
        try:
            rendered = Template.parse(text).render(context)
        except GradeError:
            continue
        assert isinstance(rendered, str)
