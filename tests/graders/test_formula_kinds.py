"""Awkward formulas and shapes of `multi`, each kind in many forms."""

from typing import Any

import pytest

from graders import Failure, Score, SpecError, parse_grader, warnings
from tests.graders.examples import grade, multi, string_check

A_IS_1_B_IS_0 = {
    "a": string_check(name="a", reference="x"),
    "b": string_check(name="b", reference="y"),
}


@pytest.mark.parametrize(
    ("formula", "column"),
    [
        ("min.__globals__['os'].system('id')", 4),
        ("__import__('os').system('id')", 1),
        ("().__class__", 2),
        ("a.__class__", 2),
        ("(lambda: 1)()", 8),
        ("[a for a in b]", 1),
        ("{a}", 1),
        ("a if b else 0", 3),
        ("a and b", 3),
        ("not a", 5),
        ("a; b", 2),
        ("a, b", 2),
        ("a = 1", 3),
        ("a := 1", 3),
        ("a == b", 3),
        ("a < b", 3),
        ("a % b", 3),
        ("a // b", 4),
        ("a ** b", 4),
        ("a ^^ b", 4),
        ("a & b", 3),
        ("~a", 1),
        ("!a", 1),
        ("a!", 2),
        ("$a", 1),
        ("a[0]", 2),
        ("'a'", 1),
        ('f"{a}"', 2),
        ("a\\b", 2),
        ("eval(a)", 1),
        ("open(a)", 1),
        ("round(a)", 1),
        ("pow(a, 2)", 1),
        ("sum(a, b)", 1),
        ("Min(a, b)", 1),
        ("a(b)", 1),
        ("2(a)", 2),
        ("(a)(b)", 4),
        ("2a", 2),
        ("a b", 3),
        ("min()", 5),
        ("min(a,)", 7),
        ("abs()", 5),
        ("abs(a, b)", 1),
        ("log(a, 2)", 1),
        ("sqrt(a b)", 8),
        ("(a", 3),
        ("a)", 2),
        ("((a)", 5),
        ("min(a", 6),
        ("()", 2),
        ("0.5 * ok)", 9),
        ("", 1),
        ("   ", 4),
        ("+", 2),
        ("a +", 4),
        ("* a", 1),
        ("a + / b", 5),
        ("1_000", 2),
        ("1__0", 2),
        ("_1__0(a)", 1),
        ("0x10", 2),
        ("0b1", 2),
        ("1e", 2),
        ("1e+", 2),
        ("1j", 2),
        ("1.2.3", 4),
        ("..5", 1),
        (".", 1),
        ("1e999", 1),
        ("１ + a", 1),
        ("a + ２", 5),
        ("٣", 1),
        ("a²", 2),
        ("½ * a", 1),
        ("α", 1),
        ("ａ", 1),
        ("a × b", 3),
        ("a − b", 3),
        ("a\u200bb", 2),
        ("a # b", 3),
        ("{{item.answer}}", 1),
    ],
)
def test_formulas_are_arithmetic_and_nothing_else(formula: str, column: int) -> None:
    spec = multi({**A_IS_1_B_IS_0, "ok": string_check()}, formula)
    if not formula:
        with pytest.raises(SpecError, match="at least 1 character"):
            parse_grader(spec)
        return
    with pytest.raises(SpecError, match=rf"at column {column}\.$") as caught:
        parse_grader(spec)
    assert (caught.value.code, caught.value.param) == ("formula_parse_error", "calculate_output")


@pytest.mark.parametrize("formula", ["c", "a + A", "min", "inf", "nan", "pi", "e", "True", "a1"])
def test_names_that_are_no_graders_are_listed(formula: str) -> None:
    with pytest.raises(SpecError, match="the graders are a, b") as caught:
        parse_grader(multi(A_IS_1_B_IS_0, formula))
    assert (caught.value.code, caught.value.param) == ("formula_parse_error", "calculate_output")


@pytest.mark.parametrize(
    "formula",
    [
        *("a / b", "1 / (a - 1)", "b / b", "a / b / a", "log(b)", "log(-a)", "log(a - 2)"),
        *("sqrt(b - 1)", "b ^ -1", "b ^ (-0.5)", "(-8 * a) ^ (1 / 3)", "exp(1000 * a)"),
        *("1e308 * 10 * a", "10 ^ 400 * b", "a * 1e308 + 1e308", "-(1e308) - 1e308 * a"),
        *("exp(exp(exp(a + 6)))", "0 * (a / b)", "min(a, a / b)", "max(a / b, 1)", "abs(a / b)"),
        *("floor(a / b)", "2 ^ 2 ^ 2 ^ 2 ^ (2 * a)"),
    ],
)
def test_formulas_without_a_finite_value_keep_the_sub_scores(formula: str) -> None:
    spec = multi(A_IS_1_B_IS_0, formula)
    outcome = grade(spec, "x")
    assert isinstance(outcome, Failure), outcome
    assert (outcome.kind, outcome.grader) == ("formula_runtime", "reward")
    assert "column" in outcome.detail
    assert outcome.sub_scores == {"a": 1.0, "b": 0.0}
    assert any("calculate_output fails where" in text for text in warnings(parse_grader(spec)))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("0.7 * a + 0.3 * b", 0.7),
        ("b ^ 0", 1),
        ("b * log(a + 1)", 0),
        ("-a ^ 2", -1),
        ("(-a) ^ 2", 1),
        ("max(a, b) - min(a, b)", 1),
        ("floor(0.5 * a) + ceil(0.5 * a)", 1),
        ("\t( a )\n", 1),
        (".5*a+5.*b+1E0", 1.5),
    ],
)
def test_formulas_that_have_a_value(formula: str, value: float) -> None:
    outcome = grade(multi(A_IS_1_B_IS_0, formula), "x")
    assert outcome == Score(value, {"a": 1.0, "b": 0.0})


@pytest.mark.parametrize(
    "graders",
    [
        *(None, 5, "ok", True, [], {}, [[]], [None], ["ok"], {"ok": None}, {"ok": []}),
        {"type": "string_check"},
        [{"type": "string_check"}],
        [string_check(), string_check()],
        [string_check(name="two words")],
        {"0k": string_check()},
        {"o-k": string_check()},
        {"": string_check()},
        {"ｏｋ": string_check()},
        {"ok": multi({"a": string_check()}, "a")},
        {"ok": {**string_check(), "type": "Multi"}},
    ],
)
def test_shapes_of_multi_that_are_none(graders: Any) -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader(multi(graders, "ok"))
    assert caught.value.problems[0].param.startswith("graders")
