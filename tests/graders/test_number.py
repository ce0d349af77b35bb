"""number: what is the same number, what is another, and what is none."""

from fractions import Fraction
from typing import Any

import pytest

from graders import Failure, Score, SpecError, parse_grader
from graders.quantity.answer import MAX_ITEMS, read_answer
from graders.quantity.literal import MAX_CHARS, MAX_EXPONENT
from tests.graders.numbers import score, spec, value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", "42"),
        ("  42\n", "42"),
        ("-5", "-5"),
        ("+5", "5"),
        ("00012", "12"),
        (".5", "1/2"),
        ("5.", "5"),
        # Thousands
        ("1,000", "1000"),
        ("1,234,567.5", "2469135/2"),
        ("12,34,567", "1234567"),
        ("1\u202f000\u00a0000", "1000000"),
        ("8{,}000", "8000"),
        (r"8\,000", "8000"),
        ("8~000", "8000"),
        # Unicode
        ("１２", "12"),
        ("１，０００．５", "2001/2"),
        ("−5", "-5"),
        ("–5", "-5"),
        ("٣٫٥", "7/2"),
        ("१२३", "123"),
        ("\u200b5\ufeff", "5"),
        # Fractions
        ("3/4", "3/4"),
        ("3 / 4", "3/4"),
        ("3⁄4", "3/4"),
        ("½", "1/2"),
        ("2½", "5/2"),
        ("2 1/2", "5/2"),
        ("-2 1/2", "-5/2"),
        (r"\frac{1}{2}", "1/2"),
        (r"-\dfrac{1}{2}", "-1/2"),
        (r"\tfrac{-1}{2}", "-1/2"),
        (r"\frac12", "1/2"),
        (r"2\frac{1}{3}", "7/3"),
        # Powers of ten
        ("1e3", "1000"),
        ("1E-3", "1/1000"),
        (r"3.2\times 10^{3}", "3200"),
        (r"3.2 \cdot 10^{-1}", "8/25"),
        ("3.2 × 10³", "3200"),
        ("3.2x10^3", "3200"),
        ("10⁻³", "1/1000"),
        ("10^6", "1000000"),
        # Money and scale
        ("$9{,}500", "9500"),
        (r"\$9,500", "9500"),
        ("€ 5", "5"),
        ("5 €", "5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("1.5 million", "1500000"),
        ("2 Thousand", "2000"),
        ("2k", "2000"),
        ("$4.5bn", "4500000000"),
        # Wrapping
        (r"\boxed{8,000}", "8000"),
        (r"\boxed{\frac{1}{2}}", "1/2"),
        (r"$\boxed{5}$", "5"),
        (r"\fbox{5}.", "5"),
        ("$5$", "5"),
        ("$$5$$", "5"),
        (r"\(5\)", "5"),
        (r"\[5\]", "5"),
        (r"$\$9500$", "9500"),
        (r"\text{5}", "5"),
        (r"\mathbf{5}", "5"),
        ("5。", "5"),
    ],
)
def test_numbers(text: str, number: str) -> None:
    assert value(text) == Fraction(number)
    assert score(text, number) == Score(1.0)
    assert score(text, "77") == Score(0.0)


@pytest.mark.parametrize(
    "text",
    [
        # Groups that are none
        "1,00",
        "1,0000",
        "1,000,00",
        "10,00",
        "0,100",
        "1,000 000",
        "1 000",
        "1_000",
        "1.000,50",
        "1,,000",
        ",000",
        "1'000",
        "1.234.567",
        # Not a number, or more than one
        "",
        " ",
        ".",
        "-",
        "%",
        "$",
        "e5",
        "1e",
        "nan",
        "true",
        "0x10",
        "1.2.3",
        "--5",
        "-$-5",
        "- 5",
        "$5€",
        "5 km",
        "3m",
        "five",
        "1, 2",
        "1/2/3",
        "1/0",
        "2 3/2",
        "1 to 5",
        "5 or 6",
        "x = 5",
        "The answer is 5",
        "5 thousands",
        r"\sqrt{4}",
        r"2\pi",
        r"\frac{1}{0}",
        r"\boxed{}",
        r"\boxed{5",
        r"\boxed{5} \boxed{6}",
        "²",
        # Too large to read
        "1e999999999",
        "1e-999999999",
        f"1e{MAX_EXPONENT + 1}",
        r"10^{99999999999999999999}",
        "1e" + "9" * 500,
        "1" * (MAX_CHARS + 1),
    ],
)
def test_what_is_no_number_scores_zero_and_is_no_reference(text: str) -> None:
    assert read_answer(text) is None
    assert score(text, 5) == Score(0.0)
    outcome = score("5", text)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("invalid_reference_error", "data")


def test_exponents_are_exact_and_bounded() -> None:
    assert value(f"1e{MAX_EXPONENT}") == 10**MAX_EXPONENT
    assert value(f"1e-{MAX_EXPONENT}") == Fraction(1, 10**MAX_EXPONENT)
    assert value("1e0003") == 1000
    assert score("0." + "0" * 400 + "1", "0." + "0" * 400 + "2") == Score(0.0)
    assert score("1e400", "10e399") == Score(1.0)


@pytest.mark.parametrize(
    ("text", "reference", "same"),
    [
        ("∞", "∞", 1),
        (r"\infty", "Infinity", 1),
        ("inf", r"+\infty", 1),
        (r"-\infty", "−∞", 1),
        ("-∞", "∞", 0),
        ("1e4000", "∞", 0),
        ("0", "∞", 0),
    ],
)
def test_infinity(text: str, reference: str, same: float) -> None:
    assert score(text, reference) == Score(same)
    assert score(text, reference, relative_tolerance=1e300) == Score(same)


@pytest.mark.parametrize(
    ("text", "reference", "same"),
    [
        ("[8.124,12.852]", "[8.124, 12.852]", 1),
        ("[8.124;12.852]", "[8.124, 12.852]", 1),
        ("[44.00,231.52]", "[44, 231.52]", 1),
        ("[28,2444.28]", "[28, 2444.28]", 1),
        # A comma may group or separate; the reference tells which.
        ("[8,152,260]", "[8, 152260]", 1),
        ("[8,152,260]", "[8152, 260]", 1),
        ("[8,152,260]", "[8, 152, 260]", 1),
        ("[8152,260]", "[8, 152260]", 0),
        ("[8, 152,260]", "[8152, 260]", 0),
        ("[1,000, 2,000]", "[1000, 2000]", 1),
        ("[1000, 2000]", "[1,000, 2,000]", 1),
        ("[1,000]", "[1000]", 1),
        ("(10,100)", "(10, 100)", 1),
        ("(10, 100)", [10, 100], 0),
        ("[10,100]", [10, 100], 1),
        ("[10100]", [10, 100], 0),
        ("[1,2,3]", "[1, 2]", 0),
        ("[1]", "[1, 2]", 0),
        ("[2, 1]", "[1, 2]", 0),
        ("(1, 2]", "[1, 2]", 0),
        (r"\left(-\infty, 5\right]", "(-∞, 5]", 1),
        (r"\left[\frac{1}{2}, 50\%\right)", "[0.5, 50%)", 1),
        (r"\boxed{[1, 2]}", "[1,2]", 1),
        ("8.124, 12.852", "[8.124, 12.852]", 0),
        ("5", "[5]", 0),
        ("[5]", "5", 0),
        ("[1, x]", "[1, 2]", 0),
        ("[1, 2", "[1, 2]", 0),
        ("[[1, 2]]", "[1, 2]", 0),
        ("[]", "[1]", 0),
    ],
)
def test_brackets(text: str, reference: Any, same: float) -> None:
    assert score(text, reference) == Score(same)


@pytest.mark.parametrize(
    "reference", ["[]", "[1, x]", "[1,,2]", "[[1, 2]]", "(1, 2", [1, None], ["a"]]
)
def test_brackets_without_numbers_are_no_reference(reference: Any) -> None:
    outcome = score("[1, 2]", reference)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "invalid_reference_error"


def test_brackets_are_bounded() -> None:
    inside = ",".join("1" for _ in range(MAX_ITEMS + 1))
    assert read_answer(f"[{inside}]") is None
    assert score(f"[{inside[2:]}]", f"[{inside[2:]}]") == Score(1.0)
    assert score("[1, 2.05]", "[1, 2]", tolerance=0.1) == Score(1.0)


@pytest.mark.parametrize(
    ("text", "reference", "keep", "fraction", "drop"),
    [
        ("5%", "5%", 1, 1, 1),
        ("5 %", "５％", 1, 1, 1),
        (r"5\%", "5 percent", 1, 1, 1),
        ("5%", "0.05", 0, 1, 0),
        ("0.05", "5%", 0, 1, 0),
        ("5%", "5", 0, 0, 1),
        ("5", "5%", 0, 0, 1),
        ("0.05%", "5%", 0, 0, 0),
    ],
)
def test_percent(text: str, reference: str, keep: float, fraction: float, drop: float) -> None:
    assert score(text, reference) == Score(keep)
    assert score(text, reference, percent="keep") == Score(keep)
    assert score(text, reference, percent="fraction") == Score(fraction)
    assert score(text, reference, percent="drop") == Score(drop)


@pytest.mark.parametrize(
    ("text", "reference", "same"),
    [("$5", "5", 1), ("5", "€5", 1), ("$5", "5$", 1), ("$5", "€5", 0), ("￥5", "¥5", 1)],
)
def test_currency(text: str, reference: str, same: float) -> None:
    assert score(text, reference) == Score(same)


@pytest.mark.parametrize(
    ("text", "reference", "tolerances", "same"),
    [
        ("0.3333", "1/3", {}, 0),
        ("0.3333", "1/3", {"tolerance": 0.001}, 1),
        # Bounds belong to it, to the last digit.
        ("5.3", "5", {"tolerance": 0.3}, 1),
        ("5.3000000000000000000001", "5", {"tolerance": 0.3}, 0),
        ("4.7", "5", {"tolerance": 0.3}, 1),
        ("101", "100", {"relative_tolerance": 0.01}, 1),
        ("101.01", "100", {"relative_tolerance": 0.01}, 0),
        # Of the reference, so it is not symmetric.
        ("99", "100", {"relative_tolerance": 0.01}, 1),
        ("100", "99", {"relative_tolerance": 0.01}, 0),
        ("-99", "-100", {"relative_tolerance": 0.01}, 1),
        ("0.1", "0", {"relative_tolerance": 0.5}, 0),
        ("0.1", "0", {"relative_tolerance": 0.5, "tolerance": 0.1}, 1),
        ("1e400", "1.001e400", {"relative_tolerance": 0.01}, 1),
    ],
)
def test_tolerance(text: str, reference: str, tolerances: dict[str, float], same: float) -> None:
    assert score(text, reference, **tolerances) == Score(same)


@pytest.mark.parametrize("reference", [8000, 8000.0, 8e3, "8,000"])
def test_references_may_be_json_numbers(reference: Any) -> None:
    assert score("8000", reference) == Score(1.0)


@pytest.mark.parametrize("reference", [True, None, {"a": 1}])
def test_other_json_is_no_reference(reference: Any) -> None:
    assert isinstance(score("1", reference), Failure)


@pytest.mark.parametrize(
    ("changes", "param", "words"),
    [
        ({"reference": "abc"}, "reference", "'abc' is not a number"),
        ({"reference": "1,00"}, "reference", "'1,00' is not a number"),
        ({"tolerance": -1}, "tolerance", "at least 0"),
        ({"relative_tolerance": float("nan")}, "", "not usable JSON"),
        ({"extract": "first"}, "extract", "'whole', 'last' or 'boxed'"),
        ({"percent": True}, "percent", "'keep', 'fraction' or 'drop'"),
        ({"tolerence": 1}, "tolerence", "did you mean 'tolerance'"),
        ({"symbolic": True, "extract": "last"}, "symbolic", "use extract 'boxed' or 'whole'"),
    ],
)
def test_refusals(changes: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_grader(spec(**changes))
    assert caught.value.param == param


def test_symbolic_without_math_verify_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graders.number.installed", lambda: False)
    with pytest.raises(SpecError, match=r"pip install 'rft-service\[symbolic\]'"):
        parse_grader(spec(symbolic=True))
