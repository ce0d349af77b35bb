"""number: the answer in a box, and the last number of a text."""

import pytest

from graders import Score
from graders.quantity.answer import boxed
from graders.quantity.last import WINDOW, last_number
from tests.graders.numbers import score


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"so \boxed{5}", "5"),
        (r"\boxed{4} no, \boxed{5}", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {\text{a\}} b}", r"\text{a\}} b"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{5", None),
        ("5", None),
        ("", None),
    ],
)
def test_boxed(text: str, found: str | None) -> None:
    assert boxed(text) == found


def test_extract_boxed() -> None:
    assert score(r"I think 3, so \boxed{8,000}", "8000", extract="boxed") == Score(1.0)
    assert score("8000", "8000", extract="boxed") == Score(0.0)
    assert score(r"\boxed{8000} or 3", r"\boxed{8000}", extract="boxed") == Score(1.0)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The answer is 42.", "42"),
        ("First 1, then 42", "42"),
        ("答案是42。", "42"),
        ("costs $1,234.50 today", "1234.5"),
        ("so x = -5", "-5"),
        ("x=−5", "-5"),
        ("5 - 3", "3"),
        ("2+3=5", "5"),
        ("H2O is 5", "5"),
        ("it is 42 (see H2O, x_1 and y_{2})", "42"),
        ("5 cm^2", "5"),
        ("5 m²", "5"),
        ("5 km", "5"),
        ("**42**", "42"),
        ("so $x = 42$.", "42"),
        (r"thus \boxed{\frac{1}{2}}.", "1/2"),
        ("about 12 million people", "12000000"),
        ("5 × 10^3 J", "5000"),
        ("it is 3/4 of it", "3/4"),
        ("Σ＝７", "7"),
        ("1. First\n2. Second", "2"),
    ],
)
def test_last_number(text: str, number: str) -> None:
    assert score(text, number, extract="last") == Score(1.0)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 1,00.",
        "first 5, then 1,00",
        "5-3",
        "2020-2021",
        "2024-01-05",
        "at 10:30",
        "version 1.2.3",
        "v12",
        "5km",
        "the 3rd",
        "1/2/3",
        "10^{6}^2",
        r"42, or \sqrt{2}",
        r"2\pi",
        "no number",
        "",
    ],
)
def test_a_piece_of_something_else_is_not_the_last_number(text: str) -> None:
    for number in ("0", "00", "1", "2", "3", "5", "6", "12", "42", "100", "30", "2021"):
        assert score(text, number, extract="last") == Score(0.0)


def test_last_brackets_and_percentages() -> None:
    assert score("between, in all, [8.124,12.852].", "[8.124, 12.852]", extract="last") == Score(1)
    assert score("f(2, 3) = 7", "7", extract="last") == Score(1.0)
    assert score("it grew by 50 %.", "50%", extract="last") == Score(1.0)
    assert score("it grew by 50 %.", "0.5", extract="last", percent="fraction") == Score(1.0)


def test_a_long_text_is_read_around_its_last_number() -> None:
    assert last_number("7 " + "x " * 500_000) == "7"
    assert last_number("3, " + "1," * WINDOW + " 7") == "7"
