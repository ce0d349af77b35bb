"""Inputs that mean harm, and what every one of them must end in."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from graders import Engine, Failure, Outcome, Score, SpecError
from tests.properties import property_test

#: Grammar, markup and numbers that something in here gives a meaning to.
PIECES = (
    *"()[]{}<>\"'\\/|^$*+-.,:;=?!%&#@_ \n\t\r0123456789",
    *("{{", "}}", "{{item.a}}", "{{sample.output_json.a}}", '["', "']", "item", "sample"),
    *("1e999", "1e-999", "-0", "NaN", "Infinity", "9" * 400, "0.1", "1,000", "1_0", "１", "٣"),
    *("(a+)+", "(a|a)*", "x{0,1000}", "(?=a)", "\\1", "(?P<n>", "[^", "\\p{L}", "\\Q"),
    *("a^b", "min(", "log(", "**", "//", "a", "b", "__globals__", "\\boxed{", "\\frac{1}{2}"),
    *("\0", "\ud800", "\udc00", "é", "e\u0301", "ß", "İ", "\u2028", "\u200b", "😀", "漢"),
    *('{"a":', "[", "null", "true", "$ref", "#/", "http://127.0.0.1/", "file:///etc/passwd"),
)


def _repeated(piece: str, times: int, rest: str) -> str:
    return piece * times + rest


short = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=40)
long = st.builds(_repeated, st.sampled_from(PIECES), st.integers(50, 40_000), short)
hostile = short | long

few = settings(property_test, max_examples=60)


#: Seconds of processor time for one input. On a quiet machine each takes less than one; beside
#: other tests the same work takes up to twice as long.
LIMIT_S = 2.5


@contextmanager
def in_time() -> Iterator[None]:
    started = time.process_time()
    yield
    seconds = time.process_time() - started
    assert seconds < LIMIT_S, f"took {seconds:.2f} s of processor time"


def graded(spec: Any, text: str, item: dict[str, Any] | None = None) -> Outcome | None:
    """Grade one completion; `None` when the grader is refused."""
    with in_time():
        try:
            engine = Engine(spec)
        except SpecError as error:
            assert str(error)
            json.dumps([vars(problem) for problem in error.problems]).encode()
            return None

    async def grade() -> Outcome:
        try:
            return (await engine.grade({"output_text": text}, item or {})).outcome
        finally:
            await engine.close()

    with in_time():
        outcome = asyncio.run(grade())
    if isinstance(outcome, Failure):
        assert outcome.kind != "internal_error", outcome.detail
    if isinstance(outcome, Score):
        assert math.isfinite(outcome.value)
    return outcome
