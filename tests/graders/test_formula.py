"""The formula language."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.errors import FormulaError
from graders.formula import FUNCTIONS, MAX_CHARS, MAX_DEPTH, Formula
from tests.properties import property_test

NAMES = {"a": 2.0, "b": 3.0, "min": 7.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("8 / 2 / 2", 2),
        ("8 - 2 - 2", 4),
        ("2 ^ 3 ^ 2", 512),
        ("-2 ^ 2", -4),
        ("2 ^ -1", 0.5),
        ("--3", 3),
        ("+a", 2),
        ("a*-b", -6),
        (".5 + 5. + 1e2 + 1E-2", 105.51),
        ("min(a, b, 1) + max(a)", 3),
        ("min + 1", 8),
        ("abs(-a) + floor(1.7) + ceil(1.2)", 5),
        ("exp(log(b))", 3),
        ("sqrt(16)", 4),
        ("log(exp(1))", 1),
        (" \t\na ", 2),
    ],
)
def test_value(text: str, value: float) -> None:
    assert Formula.parse(text).evaluate(NAMES) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        ("1 +", 4),
        ("1 2", 3),
        ("0.5 * ok)", 9),
        ("(a", 3),
        ("a + * b", 5),
        ("2 ** 3", 4),
        ("a == b", 3),
        ("f(1)", 1),
        ("abs()", 5),
        ("1 + abs(a, b)", 5),
        ("min(,a)", 5),
        ("a.b", 2),
        ("a[0]", 2),
        ("'x'", 1),
        ("1_000", 2),
        ("１", 1),
        ("é", 1),
        ("1e999", 1),
        ("a // b", 4),
        ("lambda: 1", 7),
    ],
)
def test_refused_with_column(text: str, column: int) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula.parse(text)
    assert caught.value.column == column
    assert str(caught.value).endswith(f"at column {column}")


@pytest.mark.parametrize("text", ["(" * 500 + "1", "-" * 500 + "1", "1" + "^1" * 500, "abs(" * 500])
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(FormulaError, match=f"deeper than {MAX_DEPTH}"):
        Formula.parse(text)


def test_length_is_bounded_and_long_sums_work() -> None:
    longest = "+".join(["a"] * (MAX_CHARS // 2))
    assert Formula.parse(longest).evaluate({"a": 1.0}) == MAX_CHARS // 2
    with pytest.raises(FormulaError, match="may hold"):
        Formula.parse(longest + "+aa")


def test_runtime_error_names_the_place() -> None:
    with pytest.raises(FormulaError, match="division by zero at column 7"):
        Formula.parse("a + b / (a - 2)").evaluate(NAMES)


def test_names_are_collected() -> None:
    assert Formula.parse("a + max(b, min) * a").names == {"a", "b", "min"}


PIECES = st.sampled_from([*"abc()+-*/^,.0123456789 ", *FUNCTIONS, "1e308", "1e-308", "\ud800"])


@property_test
@given(st.lists(PIECES).map("".join) | st.text())
def test_only_formula_errors_and_finite_values(text: str) -> None:
    try:
        formula = Formula.parse(text)
        value = formula.evaluate(dict.fromkeys(formula.names, 0.5))
    except FormulaError as error:
        assert 1 <= error.column <= max(len(text) + 1, MAX_CHARS + 1)
    else:
        assert math.isfinite(value)
