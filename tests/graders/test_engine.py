"""The engine: built once, failures as outcomes."""

import asyncio
import math
from typing import Any

import pytest

from graders import Engine, Failure, Score, SpecError
from graders.base import Grader, finite
from graders.paths import Context
from graders.string_check import StringCheck
from graders.template import Template
from graders.trace import Trace
from tests.graders.examples import string_check


def test_grade_reports_seconds() -> None:
    engine = Engine(string_check())
    graded = asyncio.run(engine.grade({"output_text": "x"}, {"answer": "x"}))
    assert graded.outcome == Score(1.0)
    assert graded.latency_s > 0


def test_templates_are_parsed_at_construction_only(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(string_check())

    def parse(_text: str) -> Any:
        raise AssertionError("a template was parsed while grading")

    monkeypatch.setattr(Template, "parse", parse)
    assert asyncio.run(engine.grade({"output_text": "x"}, {"answer": "x"})).outcome == Score(1.0)


def test_wrong_grader_is_refused_at_construction() -> None:
    with pytest.raises(SpecError):
        Engine({"type": "none"})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_score_that_is_not_finite_is_a_failure(value: float, monkeypatch: Any) -> None:
    class Wild(Grader):
        async def grade(self, _context: Context, _trace: Trace) -> Score:
            return Score(finite(value))

    monkeypatch.setattr(StringCheck, "build", lambda _spec, _services: Wild())
    outcome = asyncio.run(Engine(string_check()).grade({}, {})).outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.grader) == ("non_finite_reward", "exact")


def test_sample_without_text_is_a_failure() -> None:
    outcome = asyncio.run(Engine(string_check()).grade({}, {"answer": "x"})).outcome
    assert isinstance(outcome, Failure)
    assert outcome.kind == "sample_variable_error"
