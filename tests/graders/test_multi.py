"""multi: how children's outcomes combine."""

import asyncio
from typing import Any

import pytest

from graders import Abstain, Engine, Failure, Score, SpecError, check_rows, parse_grader, warnings
from graders.base import Grader
from graders.multi import MAX_CHILDREN
from graders.paths import Context
from graders.string_check import StringCheck
from graders.trace import Trace
from tests.graders.examples import grade, multi, string_check

EXACT = string_check(name="any name")
JSON_KEY = string_check(input="{{sample.output_json.k}}", reference="v")


def test_formula_over_children() -> None:
    spec = multi({"exact": EXACT, "key": JSON_KEY}, "0.75 * exact + 0.25 * key")
    outcome = grade(spec, '{"k":"v"}', {"answer": "x"})
    assert outcome == Score(0.25, {"exact": 0.0, "key": 1.0})


def test_a_failed_child_fails_the_whole_and_is_named_by_its_key() -> None:
    outcome = grade(multi({"exact": EXACT, "key": JSON_KEY}, "exact"), "x", {"answer": "x"})
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.grader) == ("sample_parse_error", "key")
    assert outcome.sub_scores == {"exact": 1.0}


def test_a_child_with_invalid_grade_scores_and_leaves_a_note() -> None:
    spec = multi({"exact": EXACT, "key": {**JSON_KEY, "invalid_grade": 0.5}}, "exact + key")
    outcome = grade(spec, "x", {"answer": "x"})
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.sub_scores) == (1.5, {"exact": 1.0, "key": 0.5})
    assert [(note.grader, note.kind) for note in outcome.notes] == [("key", "sample_parse_error")]


def test_invalid_grade_of_the_whole() -> None:
    spec = multi({"exact": EXACT, "key": JSON_KEY}, "exact + key", invalid_grade=-1)
    outcome = grade(spec, "x", {"answer": "x"})
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.notes[0].grader) == (-1.0, "key")
    assert isinstance(grade(spec, "x", {}), Failure), "a bad row is never scored"


def test_an_abstaining_child_makes_the_whole_abstain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shy(Grader):
        async def grade(self, _context: Context, _trace: Trace) -> Abstain:
            return Abstain("no opinion")

    monkeypatch.setattr(StringCheck, "build", lambda _spec, _services: Shy())
    assert grade(multi({"exact": EXACT}, "exact"), "x") == Abstain("exact: no opinion")


def test_children_are_graded_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = asyncio.Barrier(2)

    class Waiting(Grader):
        async def grade(self, _context: Context, _trace: Trace) -> Score:
            await meeting.wait()
            return Score(1.0)

    monkeypatch.setattr(StringCheck, "build", lambda _spec, _services: Waiting())
    engine = Engine(multi({"a": EXACT, "b": EXACT}, "a + b"))

    async def bounded() -> Any:
        return await asyncio.wait_for(engine.grade({}, {}), timeout=60)

    assert asyncio.run(bounded()).outcome == Score(2.0, {"a": 1.0, "b": 1.0})


def test_closing_closes_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Closing(Grader):
        async def grade(self, _context: Context, _trace: Trace) -> Score:
            return Score(1.0)

        async def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(StringCheck, "build", lambda _spec, _services: Closing())
    asyncio.run(Engine(multi({"a": EXACT, "b": EXACT}, "a + b")).close())
    assert len(closed) == 2


@pytest.mark.parametrize(
    ("graders", "formula", "param", "reason"),
    [
        ({}, "1", "graders", "must map names to graders"),
        ([], "1", "graders", "must map names to graders"),
        ("a", "1", "graders", "must map names to graders"),
        ([EXACT, EXACT], "1", "graders", "a 'name' of its own"),
        ([{**EXACT, "name": 5}], "1", "graders", "a 'name' of its own"),
        ({"a": "b"}, "a", "graders.a", "'a' is not a grader"),
        ({"a b": EXACT}, "1", "graders.a b", "letters, digits and _"),
        ({"é": EXACT}, "1", "graders.é", "letters, digits and _"),
        ({"a": multi({"b": EXACT}, "b")}, "a", "graders.a", "cannot hold another multi"),
        ({"a": {"type": "magic"}}, "a", "graders.a.type", "known types: string_check"),
        ({"a": {**EXACT, "refrence": ""}}, "a", "graders.a.refrence", "did you mean 'reference'"),
        ({"a": EXACT}, "b", "calculate_output", "names b, but the graders are a"),
        ({"a": EXACT}, "", "calculate_output", "at least 1 character"),
        ({f"a{i}": EXACT for i in range(MAX_CHILDREN + 1)}, "a0", "graders", "may hold 50"),
    ],
)
def test_refused(graders: Any, formula: str, param: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        parse_grader(multi(graders, formula))
    assert caught.value.param == param


def test_problems_of_all_children_are_listed() -> None:
    wrong = {"a": {**EXACT, "operation": "x"}, "b": {**EXACT, "input": "{{item}}"}}
    with pytest.raises(SpecError) as caught:
        parse_grader(multi(wrong, "a + b", extra=1))
    assert {problem.param for problem in caught.value.problems} == {
        "graders.a.operation",
        "graders.b.input",
        "extra",
    }


@pytest.mark.parametrize(
    ("formula", "reason"), [("c", "names c, but the graders are a"), ("a +", "ends too early")]
)
@pytest.mark.parametrize("form", ["map", "list", "single"])
def test_the_formula_is_checked_beside_wrong_children(form: str, formula: str, reason: str) -> None:
    child = {**EXACT, "name": "a", "operation": "x"}
    graders = {"map": {"a": child}, "list": [child], "single": child}[form]
    with pytest.raises(SpecError) as caught:
        parse_grader(multi(graders, formula))
    children, of_formula = caught.value.problems
    assert children.param == "graders.a.operation"
    assert (of_formula.param, of_formula.code) == ("calculate_output", "formula_parse_error")
    assert reason in of_formula.message


def test_rows_are_checked_for_the_variables_of_children() -> None:
    spec = parse_grader(multi({"a": EXACT, "b": string_check(reference="{{item.b}}")}, "a + b"))
    rows = [{"messages": [], "answer": "", "b": 1}, {"messages": [], "b": None}]
    [problem] = check_rows(spec, rows)
    assert (problem.path, problem.first_row, problem.missing) == ("item.answer", 2, 1)
    assert "1 of 2 rows lack" in problem.message


def test_warning_about_json_that_may_not_be_there() -> None:
    fragile = multi({"key": JSON_KEY}, "key")
    assert "invalid_grade" in warnings(parse_grader(fragile))[0]
    assert not warnings(parse_grader({**fragile, "invalid_grade": 0}))
    assert not warnings(parse_grader(multi({"key": {**JSON_KEY, "invalid_grade": 0}}, "key")))
