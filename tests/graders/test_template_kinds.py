"""Awkward templates and completions, each kind in many forms."""

from typing import Any

import pytest

from graders import Failure, Score, SpecError, check_rows, parse_grader
from tests.graders.examples import grade, string_check

# --- variables that are not there -------------------------------------------------------------

ROW = {
    "answer": "5",
    "Größe": "L",
    "meta": {"source": {"page": 3}, "tags": ["a", {"label": "b"}]},
    "two words": "x",
    "empty": "",
    "none": None,
}


@pytest.mark.parametrize(
    ("variable", "suggestion"),
    [
        ("item.answr", "item.answer"),
        ("item.Answer", "item.answer"),
        ("item.ANSWER", "item.answer"),
        ("item.groesse", "item.Größe"),
        ("item.meta.sorce.page", "item.meta.source.page"),
        ("item.meta.source.pages", "item.meta.source.page"),
        ("item.meta.tags[1].lable", "item.meta.tags[1].label"),
        ('item["two wrds"]', 'item["two words"]'),
        ("item.meta.tags[2]", None),
        ("item.meta.tags.label", None),
        ("item.answer.text", None),
        ("item.answer[0]", None),
        ("item.none.x", None),
        ("item.unlike_all", None),
    ],
)
def test_a_missing_field_is_counted_before_and_failed_at_run_time(
    variable: str, suggestion: str | None
) -> None:
    spec = string_check(reference=f"{{{{{variable}}}}}")
    [problem] = check_rows(parse_grader(spec), [{"messages": [], **ROW}] * 3)
    assert (problem.path, problem.missing, problem.rows) == (variable, 3, 3)
    assert problem.suggestion == suggestion
    for text in ("", "5", f"{{{{{variable}}}}}", "null", "None"):
        outcome = grade(spec, text, ROW)
        assert isinstance(outcome, Failure), "never compared with an empty or a literal text"
        assert (outcome.kind, outcome.blame) == ("invalid_variable_error", "data")
        assert (suggestion or "is missing") in outcome.detail


@pytest.mark.parametrize(
    ("variable", "text"), [("item.empty", ""), ("item.none", "null"), ("item.meta.tags[0]", "a")]
)
def test_what_is_empty_is_not_missing(variable: str, text: str) -> None:
    spec = string_check(reference=f"{{{{ {variable} }}}}")
    assert check_rows(parse_grader(spec), [ROW]) == []
    assert grade(spec, text, ROW) == Score(1.0)


def test_rows_that_lack_a_field_are_counted_each() -> None:
    spec = parse_grader(string_check(reference="{{item.answer}}"))
    rows = [{"answer": "1"}, {"answr": "2"}, {}, {"answer": None}]
    [problem] = check_rows(spec, rows)
    assert (problem.missing, problem.rows, problem.first_row) == (2, 4, 2)
    assert problem.suggestion == "item.answr"


# --- what is inserted -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{{item.answer}}",
        "{{ item.answer }}",
        "{{{{item.answer}}}}",
        "{{sample.output_text}}",
        "{{item.answer",
        "}}{{",
        "{{item['answer']}}",
        "%(answer)s {answer} ${answer} {% raw %}",
        "\\{\\{item.answer\\}\\}",
    ],
)
def test_a_completion_that_looks_like_a_template_reads_no_answer(text: str) -> None:
    assert grade(string_check(), text, {"answer": "5"}) == Score(0.0)
    assert grade(string_check(), text, {"answer": text}) == Score(1.0)
    # Nor do two values together become one.
    spec = string_check(input="{{item.left}}item.answer}}", reference="5")
    assert grade(spec, "", {"left": "{{", "answer": "5"}) == Score(0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (0, "0"),
        (-0.0, "-0.0"),
        (2.0, "2.0"),
        (1e22, "1e+22"),
        (10**30, "1" + "0" * 30),
        ("", ""),
        ("true", "true"),
        ('"', '"'),
        ([], "[]"),
        ([1, "é", None], '[1,"é",null]'),
        ({"b": 1, "a": {"x": []}}, '{"b":1,"a":{"x":[]}}'),
        ({"k": "{{item.answer}}"}, '{"k":"{{item.answer}}"}'),
    ],
)
def test_values_are_inserted_as_text_or_compact_json(value: Any, text: str) -> None:
    assert grade(string_check(), text, {"answer": value}) == Score(1.0)


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ('item["a}}b"]', "a}}b"),
        ("item['a}}b']", "a}}b"),
        ('item["{{item.x}}"]', "{{item.x}}"),
        ('item["say \\"hi\\""]', 'say "hi"'),
        ("item['say \"hi\"']", 'say "hi"'),
        ('item["it\'s"]', "it's"),
        ('item["back\\\\slash"]', "back\\slash"),
        ('item["line\\nbreak"]', "line\nbreak"),
        ('item["\\u00e9"]', "é"),
        ('item["]"]', "]"),
        ('item[""]', ""),
        ('item["a.b[0]"]', "a.b[0]"),
    ],
)
def test_keys_may_hold_anything(variable: str, key: str) -> None:
    spec = string_check(reference="<{{ " + variable + " }}>")
    assert grade(spec, "<v>", {key: "v"}) == Score(1.0)
    [problem] = check_rows(parse_grader(spec), [{"other": 1}])
    again = string_check(reference="<{{" + problem.path + "}}>")
    assert grade(again, "<v>", {key: "v"}) == Score(1.0), problem.path


@pytest.mark.parametrize(
    "variable",
    [
        *("", " ", "item", "sample", "item.", "item..a", ".item.a", "items.a", "Item.a", "answer"),
        *("item.a b", "item a", "item.-a", "item.1a", "item.a.0", "item.a,item.b"),
        *("item.a|upper", "item.a()", "item.a + 1", "item.a or item.b", "item.a if 1 else 2"),
        *("item[a]", "item[-1]", "item[1.0]", "item[01]", "item[٣]", "item[1:2]", "item[]"),
        *('item["a]', 'item["a" ]', "item['a]", "item[`a`]", 'item["\\x"]', 'item["\\ud800"]'),
        *("sample.text", "sample.output", "sample.output_txt", "sample[0]", "sample.__class__"),
        *("item.__class__.__mro__[0]()", "self.a", "config.items()", "7*7", "#each item.a", "!a"),
        *("{item.a", "/item.a", "item.a; import os", "sample.input", "item.a\x00"),
    ],
)
def test_variables_that_are_none(variable: str) -> None:
    with pytest.raises(SpecError, match="column 3") as caught:
        parse_grader(string_check(reference="x {{" + variable + "}}"))
    assert (caught.value.code, caught.value.param) == ("template_parse_error", "reference")


# --- completions that are not pure JSON -------------------------------------------------------

READS_JSON = string_check(
    input="{{sample.output_json.compliant}}", reference="{{item.compliant}}", name="g"
)


@pytest.mark.parametrize(
    "text",
    [
        'Sure: {"compliant": true}',
        '{"compliant": true} Hope this helps!',
        '```json\n{"compliant": true}\n```',
        '{"compliant": true}{"compliant": true}',
        '{"compliant": true},',
        '{"compliant": true,}',
        "{'compliant': true}",
        '{"compliant": True}',
        '{compliant: true}',
        '{"compliant": true',
        '{"compliant": true, "compliant": true}',
        '{"compliant": true, "n": NaN}',
        '{"compliant": true, "n": 1e999}',
        '{"compliant": true, "s": "\\ud800"}',
        '{"compliant": true} // yes',
        '\ufeff{"compliant": true}',
        '"compliant": true',
        "",
        "   ",
        "true true",
        "undefined",
    ],
)  # fmt: skip
def test_a_completion_that_is_not_pure_json_is_a_failure_of_the_sample(text: str) -> None:
    outcome = grade(READS_JSON, text, {"compliant": True})
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("sample_parse_error", "sample")
    priced = grade({**READS_JSON, "invalid_grade": -0.5}, text, {"compliant": True})
    assert isinstance(priced, Score)
    assert (priced.value, priced.notes[0].kind) == (-0.5, "sample_parse_error")


@pytest.mark.parametrize("text", ["5", '"compliant"', "[true]", "null", "{}", '{"Compliant": 1}'])
def test_pure_json_without_the_field_lacks_the_field(text: str) -> None:
    outcome = grade(READS_JSON, text, {"compliant": True})
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("sample_variable_error", "sample")


@pytest.mark.parametrize("text", ['{"compliant":true}', ' \n{"compliant" : true , "why": "x"}\t'])
def test_pure_json_is_read(text: str) -> None:
    assert grade(READS_JSON, text, {"compliant": True}) == Score(1.0)
    assert grade(READS_JSON, text, {"compliant": False}) == Score(0.0)
