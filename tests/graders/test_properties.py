"""Whatever users write: every input ends in an answer or in an error of ours, within a second.

Seconds are those of this process's processor time, which a busy machine does not stretch.
"""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graders import Failure, Score, SpecError, check_rows, parse_grader, warnings
from graders.errors import FormulaError, GradeError, TemplateError
from graders.formula import Formula
from graders.paths import Context, Path
from graders.registry import SINGLE_GRADERS
from graders.template import Template
from tests.graders.examples import multi, string_check
from tests.graders.hostile import few, graded, hostile, in_time, short
from tests.properties import json_values, property_test

# --- templates and paths ----------------------------------------------------------------------


@few
@given(text=hostile, value=json_values, output=hostile)
def test_templates(text: str, value: Any, output: str) -> None:
    with in_time():
        try:
            template = Template.parse(text)
        except TemplateError:
            return
        for path in template.paths:
            assert Path.parse(str(path)) == path
        try:
            rendered = template.render(Context({"output_text": output}, {"a": value}))
        except GradeError:
            return
    assert isinstance(rendered, str)


@few
@given(key=hostile.filter(bool).map(lambda key: key[:9_000]), value=json_values, near=short)
def test_every_key_can_be_named(key: str, value: Any, near: str) -> None:
    """A path is written so that it reads back; one that is absent has a readable neighbour."""
    path = Path("item", (key, 0, key))
    with in_time():
        if not any("\ud800" <= c <= "\udfff" for c in key):
            assert Path.parse(str(path)) == path
            assert Template.parse("{{ " + str(path) + " }}").parts == (path,)
        context = Context({}, {key: value, near: value})
        with pytest.raises(GradeError):
            context.value(Path("item", (key + "x" * 5, 0)))


@few
@given(rows=st.lists(st.dictionaries(hostile, json_values, max_size=5), max_size=5))
def test_rows_are_checked(rows: list[dict[str, Any]]) -> None:
    spec = parse_grader(string_check(reference="{{item.answer}}{{item.a.b[0]}}"))
    with in_time():
        for problem in check_rows(spec, rows):
            assert problem.missing <= problem.rows == len(rows)


def test_a_row_with_many_fields_is_no_burden() -> None:
    item = {f"answer number {i}": i for i in range(200_000)}
    with in_time():
        outcome = graded(string_check(reference="{{item.answr}}"), "", item)
    assert isinstance(outcome, Failure)


# --- formulas ---------------------------------------------------------------------------------


@few
@given(text=hostile, value=st.floats(allow_nan=False, allow_infinity=False))
@example(text="^".join("a" * 900), value=2.0)
@example(text="(" * 900 + "a" + ")" * 900, value=2.0)
@example(text="-" * 1_900 + "a", value=2.0)
@example(text="exp(" * 30 + "a" + ")" * 30, value=700.0)
@example(text="+".join(["a^a^a"] * 300), value=9.0)
def test_formulas(text: str, value: float) -> None:
    with in_time():
        try:
            formula = Formula.parse(text)
            result = formula.evaluate(dict.fromkeys(formula.names, value))
        except FormulaError as error:
            assert error.column >= 1
            return
    assert math.isfinite(result)


@few
@given(text=hostile, key=short, output=hostile)
def test_multi(text: str, key: str, output: str) -> None:
    graded(multi({"a": string_check(), "b": string_check()}, text), output, {"answer": output})
    graded(multi({key: string_check()}, key), output, {"answer": output})


@few
@given(pattern=hostile, text=hostile, flags=st.sets(st.sampled_from(["multiline", "dot_all"])))
@example(pattern="(x+x+)+y", text="x" * 40_000, flags=set())
@example(pattern="x{0,1000}" * 200, text="x", flags={"dot_all"})
@example(pattern="x{0,1000}" * 9, text="x" * 40_000, flags={"dot_all"})
@example(pattern="(.{0,900}a){1,900}", text="x" * 40_000, flags=set())
@example(pattern="((a{0,30}){0,30})", text="a" * 40_000, flags=set())
@example(pattern="(" * 900 + ")" * 900, text="a", flags=set())
@example(pattern="|".join(["a.*"] * 600), text="a" * 1_000_000, flags={"dot_all"})
def test_regular_expressions(pattern: str, text: str, flags: set[str]) -> None:
    graded({"type": "regex", "name": "r", "pattern": pattern} | dict.fromkeys(flags, True), text)


@few
@given(
    text=hostile,
    reference=hostile | st.sampled_from(["5", "0.5", "50%", "1/2"]),
    extract=st.sampled_from(["whole", "last", "boxed"]),
)
@example(text="9" * 100_000, reference="1", extract="whole")
@example(text="1e" + "9" * 1_000, reference="1", extract="last")
@example(text="1/" * 20_000, reference="1", extract="last")
@example(text="\\boxed{" * 20_000, reference="1", extract="boxed")
@example(text="\\frac{" * 20_000, reference="1", extract="whole")
@example(text="1," * 40_000, reference="1", extract="last")
@example(text="." * 100_000, reference="1", extract="last")
@example(text=" " * 100_000 + "x", reference="1", extract="last")
@example(text="-" * 100_000, reference="1", extract="whole")
def test_numbers(text: str, reference: str, extract: str) -> None:
    spec = {"type": "number", "name": "n", "reference": "{{item.answer}}", "extract": extract}
    graded(spec, text, {"answer": reference})


@settings(property_test, max_examples=120)
@given(
    metric=st.sampled_from(
        ["fuzzy_match", "bleu", "gleu", "meteor", "rouge_1", "rouge_2", "rouge_5", "rouge_l"]
    ),
    text=hostile,
    reference=hostile,
)
@example(metric="rouge_l", text="a b " * 40_000, reference="b a " * 40_000)
@example(metric="meteor", text="a " * 40_000, reference="a " * 40_000)
@example(metric="meteor", text="a b " * 2_000, reference="b a " * 2_000)
@example(metric="bleu", text="a " * 100_000, reference="a " * 100_000)
@example(metric="gleu", text="a " * 100_000, reference="a b" * 100_000)
@example(metric="fuzzy_match", text="ab" * 100_000, reference="ba" * 100_000)
@example(metric="rouge_5", text="x" * 300_000, reference="x" * 300_000)
@example(metric="bleu", text="\u0315\u0300" * 200_000, reference="a")
@example(metric="rouge_1", text="\u0315\u0300" * 200_000, reference="a")
@example(metric="bleu", text="." * 100_000, reference="!" * 100_000)
def test_similar_texts(metric: str, text: str, reference: str) -> None:
    spec = {
        "type": "text_similarity",
        "name": "t",
        "evaluation_metric": metric,
        "input": "{{sample.output_text}}",
        "reference": "{{item.answer}}",
    }
    outcome = graded(spec, text, {"answer": reference})
    if isinstance(outcome, Score):
        assert 0.0 <= outcome.value <= 1.0


@few
@given(text=hostile, reference=hostile, form=st.sampled_from(["nfc", "nfkc"]))
@example(text="\u0315\u0300" * 200_000, reference="a", form="nfc")
@example(text="\u0f73" * 400_000, reference="a", form="nfkc")
@example(text="\u0344\u0315" * 200_000, reference="e", form="nfkc")
@example(text="e\u0301" * 200_000, reference="é" * 400_000, form="nfc")
@example(text="\ufdfa" * 400_000, reference="a", form="nfkc")
def test_compared_texts(text: str, reference: str, form: str) -> None:
    for operation in ("eq", "ilike"):
        spec = string_check(operation=operation, normalize=form)
        graded(spec, text, {"answer": reference})


# --- whole graders ----------------------------------------------------------------------------

_FIELDS = {field for spec in SINGLE_GRADERS.values() for field in spec.model_fields}
_FIELD_VALUES = hostile | json_values | st.sampled_from(["eq", "{{item.a}}", 1, True, None, [], {}])
_RANDOM = st.fixed_dictionaries(
    {"type": st.sampled_from([*SINGLE_GRADERS, "multi"]), "name": short | st.just("g")},
    optional=dict.fromkeys(sorted(_FIELDS - {"type", "name"}), _FIELD_VALUES),
)
_NESTED = st.fixed_dictionaries(
    {
        "type": st.just("multi"),
        "name": st.just("m"),
        "graders": st.dictionaries(short, _RANDOM, max_size=3) | st.lists(_RANDOM, max_size=3),
        "calculate_output": hostile,
    }
)


@settings(property_test, max_examples=200)
@given(raw=json_values | _RANDOM | _NESTED)
def test_whole_graders_are_read_or_refused(raw: Any) -> None:
    with in_time():
        try:
            spec = parse_grader(raw)
        except SpecError as error:
            assert str(error)
            return
        warnings(spec)
        assert parse_grader(spec.wire()).wire() == spec.wire()


@pytest.mark.parametrize(
    "raw",
    [
        {**string_check(), **{f"field{i}": i for i in range(30_000)}},
        multi({f"g{i}": {"type": "none"} for i in range(30_000)}, "g0"),
        multi([{"type": "string_check", "name": str(i)} for i in range(30_000)], "g0"),
        multi({f"g{i}": {f"f{j}": j for j in range(500)} for i in range(50)}, "g0"),
        multi({f"g{i}": string_check() for i in range(50)}, "+".join(f"g{i}" for i in range(50))),
        multi({"a" * 100_000: string_check()}, "a"),
        string_check(input="{{item.a}}" * 6_000),
        string_check(input='{{item["' * 6_000),
        string_check(input="{{item" + '["a"]' * 12_000 + "}}"),
        string_check(input="{{item['" * 6_000 + "}}"),
        {"type": "x" * 400_000},
        json.loads("[" * 900 + "]" * 900),
    ],
)
def test_graders_that_could_stall(raw: Any) -> None:
    with in_time():
        try:
            parse_grader(raw)
        except SpecError as error:
            assert len(str(error)) < 200_000
