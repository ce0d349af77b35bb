"""Scores that are paid for once."""

import asyncio
from typing import Any

import pytest

from graders import Engine, Failure, Outcome, Score
from graders.cache import Cache
from graders.engine import Graded
from graders.errors import GradeError
from graders.paths import Context, Path
from graders.string_check import StringCheck
from graders.trace import Trace
from tests.graders.examples import multi, string_check
from tests.graders.stand_ins import Acting, Behaviour, stand_in

PAID = string_check(name="paid")


class Paid:
    """Counts what it is asked; fails on the answer `bad`."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def act(self, context: Context, trace: Trace) -> Outcome:
        self.asked.append(context.item.get("answer"))
        number = len(self.asked)
        trace.model = "m"
        trace.keep(f"answer {number}")
        await asyncio.sleep(0)
        if context.item.get("answer") == "bad":
            raise GradeError("model_grader_server_error", "Gone.")
        return Score(float(number))


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Paid:
    counter = Paid()
    _cached(monkeypatch, counter.act)
    return counter


def _cached(monkeypatch: pytest.MonkeyPatch, act: Behaviour) -> None:
    stand_in(monkeypatch, paid=Acting(act))
    monkeypatch.setattr(StringCheck, "cacheable", lambda spec: spec.name == "paid")


def _grade(spec: Any, *asked: tuple[str, dict[str, Any]], at_once: bool = False) -> list[Graded]:
    async def grade() -> list[Graded]:
        engine = Engine(spec)
        gradings = [engine.grade({"output_text": text}, item) for text, item in asked]
        return await asyncio.gather(*gradings) if at_once else [await g for g in gradings]

    return asyncio.run(grade())


def test_the_same_question_is_paid_for_once(paid: Paid) -> None:
    first, again = _grade(PAID, ("x", {"answer": "a", "n": 1}), ("x", {"answer": "a", "n": 2}))
    assert (first.outcome, again.outcome) == (Score(1.0), Score(1.0))
    assert (first.traces[0].cached, first.traces[0].attempts) == (False, 1)
    assert (again.traces[0].cached, again.traces[0].attempts) == (True, 0)
    assert (again.traces[0].model, again.traces[0].output) == ("m", "answer 1")
    assert paid.asked == ["a"], "n is not read by the grader"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("x", {"answer": "a"}), ("x", {"answer": "b"})),
        (("x", {"answer": "a"}), ("y", {"answer": "a"})),
        (("x", {"answer": 1}), ("x", {"answer": "1"})),
        (("x", {"answer": 1}), ("x", {"answer": True})),
        (("x", {"answer": 1}), ("x", {"answer": 1.0})),
        (("x", {"answer": {"a": 1, "b": 2}}), ("x", {"answer": {"b": 2, "a": 1}})),
        (("a", {"answer": "b,c"}), ("a,b", {"answer": "c"})),
    ],
)
@pytest.mark.usefixtures("paid")
def test_other_questions_are_others(one: Any, other: Any) -> None:
    assert [g.outcome.value for g in _grade(PAID, one, other)] == [1.0, 2.0]


@pytest.mark.usefixtures("paid")
def test_a_grader_without_variables_depends_on_everything() -> None:
    everything = {**PAID, "input": "a", "reference": "b"}
    asked = [("x", {"n": 1}), ("x", {"n": 2}), ("y", {"n": 1}), ("x", {"n": 1})]
    values = [g.outcome.value for g in _grade(everything, *asked)]
    assert values == [1.0, 2.0, 3.0, 1.0]


def test_failures_are_not_kept(paid: Paid) -> None:
    bad = ("x", {"answer": "bad"})
    graded = _grade(PAID, bad, bad)
    assert all(isinstance(g.outcome, Failure) and not g.traces[0].cached for g in graded)
    assert paid.asked == ["bad", "bad"]


def test_what_lacks_a_variable_is_graded_and_not_kept(paid: Paid) -> None:
    _grade(PAID, ("x", {}), ("x", {}))
    assert paid.asked == [None, None]


def test_equal_questions_at_once_are_asked_once(paid: Paid) -> None:
    graded = _grade(PAID, *[("x", {"answer": "a"})] * 5, ("x", {"answer": "b"}), at_once=True)
    assert [g.outcome.value for g in graded] == [1.0] * 5 + [2.0]
    assert [g.traces[0].cached for g in graded] == [False, True, True, True, True, False]
    failed = _grade(PAID, *[("x", {"answer": "bad"})] * 3, at_once=True)
    assert {g.outcome.kind for g in failed} == {"model_grader_server_error"}
    assert paid.asked == ["a", "b", "bad"]


def test_when_the_first_is_cancelled_the_next_one_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, goes_on = [], asyncio.Event()

    async def act(context: Context, _trace: Trace) -> Outcome:
        asked.append(context)
        await goes_on.wait()
        return Score(1.0)

    _cached(monkeypatch, act)

    async def grade() -> list[Outcome]:
        engine = Engine(PAID)
        first, *others = [
            asyncio.create_task(engine.grade({"output_text": "x"}, {"answer": "a"}))
            for _ in range(3)
        ]
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.wait([first])
        goes_on.set()
        return [(await other).outcome for other in others]

    assert asyncio.run(grade()) == [Score(1.0)] * 2
    assert len(asked) == 2


@pytest.mark.usefixtures("paid")
def test_children_of_a_multi_are_cached() -> None:
    spec = multi({"paid": PAID, "plain": string_check()}, "paid + plain")
    first, again = _grade(spec, ("a", {"answer": "a"}), ("a", {"answer": "a"}))
    assert first.outcome == again.outcome == Score(2.0, {"paid": 1.0, "plain": 1.0})
    assert {t.grader: t.cached for t in again.traces} == {
        "reward": False,
        "paid": True,
        "plain": False,
    }


def test_the_longest_unused_goes_first() -> None:
    async def fill() -> list[bool]:
        cache = Cache(frozenset({Path.parse("item.a")}), max_bytes=3_500)

        async def ask(number: int) -> bool:
            trace = Trace("g", "t")
            key = cache.key(Context({}, {"a": number}))
            assert key is not None
            await cache.outcome(key, trace, one)
            return trace.cached

        async def one() -> Outcome:
            return Score(1.0)

        return [await ask(number) for number in (1, 2, 3, 1, 4, 1, 2)]

    assert asyncio.run(fill()) == [False, False, False, True, False, True, False]


def test_what_is_too_large_is_not_kept_and_still_answered() -> None:
    async def ask() -> None:
        cache = Cache(frozenset(), max_bytes=10)

        async def one() -> Outcome:
            await asyncio.sleep(0)
            return Score(1.0)

        traces = [Trace("g", "t") for _ in range(2)]
        outcomes = await asyncio.gather(*(cache.outcome(b"k", t, one) for t in traces))
        assert outcomes == [Score(1.0)] * 2
        assert [t.cached for t in traces] == [False, True]

    asyncio.run(ask())
