"""number: every text ends in a verdict, soon, and so does every formula."""

import asyncio
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import Engine, Failure, Outcome, Score
from graders.errors import GradeError
from graders.quantity.last import last_number
from graders.quantity.literal import read_quantity
from graders.quantity.plain import plain
from graders.symbolic import Symbolic
from tests.graders.hostile import few, graded, hostile
from tests.graders.numbers import score, spec, value

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
