"""Where the completions of one prompt meet."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from graders import Engine, Failure, Outcome, Score, group
from graders.engine import Graded
from graders.errors import GradeError
from graders.group import Group
from graders.paths import Context
from graders.trace import Trace
from tests.graders.examples import multi, string_check
from tests.graders.stand_ins import Acting, other_tasks, stand_in

RANKED = string_check(name="ranked")


async def _by_length(contexts: list[Context]) -> list[Outcome]:
    return [Score(len(c.sample["output_text"]) / len(contexts)) for c in contexts]


async def _compare(context: Context, trace: Trace) -> Outcome:
    """Rank by length, but fail before that on a completion that is empty."""
    if not context.sample["output_text"]:
        raise GradeError("sample_parse_error", "It is empty.")
    assert context.group is not None
    return await context.group.rank(trace.grader, context, _by_length)


def _run(grading: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await grading

    return asyncio.run(bounded())


async def _grade(engine: Engine, texts: list[str], size: int | None = None) -> list[Outcome]:
    shared = Group(size or len(texts))
    graded = await asyncio.gather(
        *(engine.grade({"output_text": text}, {"answer": ""}, group=shared) for text in texts)
    )
    assert not other_tasks()
    return [g.outcome for g in graded]


def test_each_gets_its_own_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare))
    outcomes = _run(_grade(Engine(RANKED), ["aa", "a", "aaa", "aaaa"]))
    assert outcomes == [Score(0.5), Score(0.25), Score(0.75), Score(1.0)]


def test_more_groups_than_turns_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one turn and every member of the first kind first, none could ever be complete."""
    stand_in(monkeypatch, ranked=Acting(_compare, concurrency=1))

    async def grade() -> list[Graded]:
        engine = Engine(multi({"ranked": RANKED, "plain": string_check()}, "ranked"))
        groups = [Group(3) for _ in range(10)]
        return await asyncio.gather(
            *(
                engine.grade({"output_text": "aaa"}, {"answer": "a"}, group=shared)
                for _ in range(3)
                for shared in groups
            )
        )

    outcomes = [g.outcome for g in _run(grade())]
    assert outcomes == [Score(1.0, {"ranked": 1.0, "plain": 0.0})] * 30


def test_waiting_for_the_others_is_not_the_grader_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare, time_limit_s=0.05))

    async def grade() -> list[Graded]:
        engine, shared = Engine(RANKED), Group(2)
        early = asyncio.create_task(engine.grade({"output_text": "a"}, {}, group=shared))
        await asyncio.sleep(0.2)
        late = await engine.grade({"output_text": "aa"}, {}, group=shared)
        return [await early, late]

    early, late = _run(grade())
    assert [early.outcome, late.outcome] == [Score(0.5), Score(1.0)]
    assert early.latency_s > 0.1 > early.traces[0].latency_s


def test_a_completion_that_fails_before_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare))
    for texts in (["", "aa", "a"], ["aa", "a", ""], ["aa", "", "a"]):
        outcomes = dict(zip(texts, _run(_grade(Engine(RANKED), texts)), strict=True))
        assert (outcomes["aa"], outcomes["a"]) == (Score(1.0), Score(0.5)), texts
        assert isinstance(outcomes[""], Failure)
    assert all(isinstance(o, Failure) for o in _run(_grade(Engine(RANKED), ["", ""])))


def test_a_ranking_that_fails_fails_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_contexts: list[Context]) -> list[Outcome]:
        raise GradeError("model_grader_refusal_error", "No.")

    async def too_few(_contexts: list[Context]) -> list[Outcome]:
        return [Score(1.0)]

    for rank, kind in ((refuse, "model_grader_refusal_error"), (too_few, "internal_error")):

        async def act(context: Context, trace: Trace, rank: Any = rank) -> Outcome:
            assert context.group is not None
            return await context.group.rank(trace.grader, context, rank)

        stand_in(monkeypatch, ranked=Acting(act))
        outcomes = _run(_grade(Engine(RANKED), ["a", "b", "c"]))
        assert [getattr(o, "kind", None) for o in outcomes] == [kind] * 3


def test_a_ranking_that_hangs_is_ended_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_contexts: list[Context]) -> list[Outcome]:
        await asyncio.Event().wait()
        return []

    async def act(context: Context, trace: Trace) -> Outcome:
        assert context.group is not None
        return await context.group.rank(trace.grader, context, hang)

    stand_in(monkeypatch, ranked=Acting(act, concurrency=1, time_limit_s=0.05))
    outcomes = _run(_grade(Engine(RANKED), ["a", "b", "c"]))
    assert [getattr(o, "kind", None) for o in outcomes] == ["unresponsive_reward_error"] * 3


def test_a_member_that_never_comes_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare))
    monkeypatch.setattr(group, "MAX_WAIT_S", 0.05)
    outcomes = _run(_grade(Engine(RANKED), ["a", "aa"], size=3))
    for outcome in outcomes:
        assert isinstance(outcome, Failure)
        assert outcome.kind == "unresponsive_reward_error"
        assert "Only 2 of the 3 completions" in outcome.detail


def test_a_member_that_is_cancelled_leaves_the_others_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare))

    async def grade() -> list[Graded]:
        engine, shared = Engine(RANKED), Group(3)
        texts = ["gone", "a", "aa"]
        gone, *others = [
            asyncio.create_task(engine.grade({"output_text": t}, {}, group=shared))
            for t in texts[:2]
        ]
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        last = await engine.grade({"output_text": "aa"}, {}, group=shared)
        return [await others[0], last]

    assert [g.outcome for g in _run(grade())] == [Score(0.5), Score(1.0)]


def test_waiting_is_told_to_whoever_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_compare))
    told: list[str] = []

    async def grade() -> None:
        engine, shared = Engine(RANKED), Group(2)
        await asyncio.gather(
            *(
                engine.grade(
                    {"output_text": text},
                    {},
                    group=shared,
                    on_wait=lambda text=text: told.append(text),
                )
                for text in ("first", "last")
            )
        )

    _run(grade())
    assert told == ["first"]
