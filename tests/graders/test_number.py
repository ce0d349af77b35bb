"""number: what is the same number, what is another, and what is none."""

import asyncio
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import Engine, Failure, Outcome, Score, SpecError, parse_grader
from graders.errors import GradeError
from graders.quantity.answer import MAX_ITEMS, boxed, read_answer
from graders.quantity.last import WINDOW, last_number
from graders.quantity.literal import MAX_CHARS, MAX_EXPONENT, Quantity, read_quantity
from graders.quantity.plain import plain
from graders.symbolic import Symbolic
from tests.graders.examples import grade
from tests.graders.hostile import few, graded, hostile


def spec(**changes: Any) -> dict[str, Any]:
    return {"type": "number", "name": "total", "reference": "{{item.answer}}"} | changes


def score(text: str, reference: Any, **changes: Any) -> Outcome:
    return grade(spec(**changes), text, {"answer": reference})


def value(text: str) -> Fraction | None:
    found = read_answer(text)
    return found.value if isinstance(found, Quantity) and not found.infinite else None


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


@pytest.mark.parametrize(
    ("changes", "param", "words"),
    [
        ({"reference": "abc"}, "reference", "'abc' is not a number"),
        ({"reference": "1,00"}, "reference", "'1,00' is not a number"),
        ({"tolerance": -1}, "tolerance", "greater than or equal to 0"),
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


DIGITS = st.integers(min_value=-(10**12), max_value=10**12)


@given(DIGITS, st.integers(0, 3))
def test_every_way_to_write_a_number_is_that_number(number: int, decimals: int) -> None:
    tail = f".{abs(number) % 10**decimals:0{decimals}d}" if decimals else ""
    written = f"{number}{tail}"
    wanted = Fraction(written)
    grouped = f"{number:,}{tail}"
    full_width = "".join(chr(ord(c) + 0xFEE0) for c in written)
    latex = grouped.replace(",", "{,}")
    for text in (written, grouped, full_width, latex, f"$ {latex} $", rf"\boxed{{{grouped}}}"):
        assert value(text) == wanted, text
        assert value(last_number(f"it is {text}") or "") == wanted, text


@given(
    st.text(max_size=80) | st.text(alphabet="0123456789,.-+/^{}[]()%$ e\\frac∞½x10box", max_size=80)
)
@settings(deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    for extract in ("whole", "last", "boxed"):
        assert isinstance(score(text, "5", extract=extract), Score)
    outcome = score("5", text)
    assert isinstance(outcome, Score) or outcome.kind == "invalid_reference_error"
    assert plain(plain(text)) == plain(text) or "\\" in text or "{" in text


@given(st.text(alphabet="0123456789,.", min_size=1, max_size=12))
def test_commas_only_group_digits_validly(text: str) -> None:
    found = read_quantity(text)
    if found is not None and "," in text:
        head, *groups = text.partition(".")[0].split(",")
        assert 1 <= len(head) <= 3 and not head.startswith("0")
        assert len(groups[-1]) == 3
        assert len({len(group) for group in groups[:-1]}) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "1" * 100_000,
        "1," * 50_000,
        "1,000" + ",000" * 20_000,
        "(" * 100_000,
        "[1," * 30_000,
        "{" * 100_000,
        "$" * 100_000,
        r"\boxed{" * 15_000,
        r"\frac{" * 15_000,
        "-" * 100_000,
        "1/" * 50_000,
        "1e" * 50_000,
        "10^" * 30_000,
        "½" * 50_000,
        ". " * 50_000 + "1,00",
        "\\a[" * 30_000 + "1",
        "1 " * 50_000,
    ],
)
@pytest.mark.timeout(20)
def test_hostile_texts_are_cheap(text: str) -> None:
    # Milliseconds while it is linear; what is quadratic here takes minutes.
    for extract in ("whole", "last", "boxed"):
        assert isinstance(score(text, "5", extract=extract), Score)


# symbolic


def compare(pairs: list[tuple[str, str]], **changes: Any) -> list[Outcome]:
    async def run() -> list[Outcome]:
        engine = Engine(spec(symbolic=True, **changes))
        try:
            grades = [engine.grade({"output_text": t}, {"answer": r}) for t, r in pairs]
            return [graded.outcome for graded in await asyncio.gather(*grades)]
        finally:
            await engine.close()

    return asyncio.run(run())


def test_symbolic() -> None:
    expected = [
        ("x^2 + 2x + 1", "(x+1)^2", 1),
        (r"\boxed{\frac{\sqrt{2}}{2}}", r"\frac{1}{\sqrt{2}}", 1),
        ("$2x$", "x + x", 1),
        ("x", "y", 0),
        ("", "x", 0),
        (r"I do not know", r"2\pi", 0),
        # Numbers are still compared as numbers, with the tolerance.
        ("8,000", "8001", 1),
        ("8,000", "8002", 0),
        ("1,00", "100", 0),
        ("__import__('os').abort()", "x", 0),
    ]
    outcomes = compare([(text, reference) for text, reference, _ in expected], tolerance=1)
    assert outcomes == [Score(float(same)) for *_, same in expected]


def test_a_reference_that_is_no_formula_is_a_failure() -> None:
    [outcome] = compare([("x", "")])
    assert isinstance(outcome, Failure)
    assert outcome.kind == "invalid_reference_error"


def test_a_formula_that_hangs_is_killed_and_holds_up_nobody() -> None:
    async def run() -> tuple[list[Any], set[Any]]:
        symbolic = Symbolic(size=1, limit_s=1)
        started = set()
        try:
            assert await symbolic.equal("x", "x")
            started |= symbolic._all
            hung = asyncio.create_task(symbolic.equal("9^{9^{9^{9}}}", "1"))
            # Neither the loop nor the pair behind it in the queue suffers.
            after = asyncio.create_task(symbolic.equal("x + x", "2x"))
            results = await asyncio.gather(hung, after, return_exceptions=True)
            started |= symbolic._all
        finally:
            await symbolic.close()
        return results, started

    (hung, after), workers = asyncio.run(run())
    assert isinstance(hung, GradeError)
    assert (hung.kind, hung.detail) == (
        "other_error",
        "Comparing the formulas took more than 1 s.",
    )
    assert after is True
    assert len(workers) == 2
    assert all(worker.returncode is not None for worker in workers)


def test_a_cancelled_comparison_never_answers_the_next_one() -> None:
    async def run() -> list[bool | None]:
        symbolic = Symbolic(size=1)
        try:
            await symbolic.equal("x", "x")
            cancelled = asyncio.create_task(symbolic.equal("x", "y"))
            await asyncio.sleep(0)
            cancelled.cancel()
            return [await symbolic.equal("y", "y"), await symbolic.equal("x", "y")]
        finally:
            await symbolic.close()

    assert asyncio.run(run()) == [True, False]


@few
@given(hostile, hostile, st.sampled_from(["whole", "last", "boxed"]))
def test_hostile_texts_end_in_a_verdict(text: str, reference: str, extract: str) -> None:
    graded(spec(extract=extract), text, {"answer": reference})
    graded(spec(extract=extract, reference=reference), text)
