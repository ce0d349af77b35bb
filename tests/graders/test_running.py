"""How graders are run: on the spot, in turns, within limits, and freed when they are not wanted."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from graders import Abstain, Engine, Failure, Outcome, Score, running
from graders.errors import GradeError
from graders.outcome import Note
from graders.paths import Context
from graders.trace import Trace
from tests.graders.examples import json_schema, multi, string_check
from tests.graders.stand_ins import Acting, Computing, never, other_tasks, stand_in

SLOW = string_check(name="slow")
SLOW_AND_FAST = multi({"slow": SLOW, "fast": string_check()}, "slow + fast")


async def _one(_context: Context, _trace: Trace) -> Outcome:
    return Score(1.0)


# --- on the spot ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        string_check(),
        json_schema({"type": "string"}),
        multi({"a": string_check(), "b": json_schema({})}, "a + b"),
    ],
)
def test_graders_that_only_compute_wait_for_nothing(spec: dict[str, Any]) -> None:
    engine = Engine(spec)
    assert engine.instant
    grading = engine.grade({"output_text": "x"}, {"answer": "x"})
    with pytest.raises(StopIteration) as end:
        grading.send(None)  # no event loop: a coroutine that awaited anything would suspend here
    assert isinstance(end.value.value.outcome, Score)


def test_one_grader_that_waits_makes_the_whole_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, slow=Acting(_one))
    assert not Engine(SLOW_AND_FAST).instant


def test_a_slow_computation_leaves_the_loop_free_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []
    slow = True

    def compute(_context: Context) -> Outcome:
        threads.append(threading.current_thread())
        if slow:
            time.sleep(2 * running.SLOW_S)
        return Score(1.0)

    stand_in(monkeypatch, slow=Computing(compute))

    async def grade() -> None:
        nonlocal slow
        engine = Engine(SLOW)
        await engine.grade({}, {})
        assert not engine.instant
        await engine.grade({}, {})
        slow = False
        while not engine.instant:
            await engine.grade({}, {})
        await engine.grade({}, {})
        await engine.close()

    asyncio.run(grade())
    here = [thread is threading.main_thread() for thread in threads]
    assert (here[0], here[1], here[-1]) == (True, False, True)
    assert not any(here[1:-1])


def test_a_slow_computation_is_never_run_twice_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_time = threading.Lock()

    def compute(_context: Context) -> Outcome:
        assert at_a_time.acquire(blocking=False)
        time.sleep(2 * running.SLOW_S)
        at_a_time.release()
        return Score(1.0)

    stand_in(monkeypatch, slow=Computing(compute))

    async def grade() -> list[Outcome]:
        engine = Engine(SLOW)
        graded = await asyncio.gather(*(engine.grade({}, {}) for _ in range(5)))
        await engine.close()
        return [g.outcome for g in graded]

    assert asyncio.run(grade()) == [Score(1.0)] * 5


def test_a_slow_computation_that_no_one_waits_for_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Context] = []

    def compute(context: Context) -> Outcome:
        begun.append(context)
        time.sleep(2 * running.SLOW_S)
        return Score(1.0)

    stand_in(monkeypatch, slow=Computing(compute))

    async def grade() -> None:
        engine = Engine(SLOW)
        await engine.grade({}, {})
        tasks = [asyncio.create_task(engine.grade({}, {})) for _ in range(20)]
        await asyncio.sleep(running.SLOW_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (await engine.grade({}, {})).outcome == Score(1.0)
        await engine.close()

    asyncio.run(grade())
    assert len(begun) <= 4, "those that were still queued are not computed"


# --- whatever goes wrong is a failure ---------------------------------------------------------


@pytest.mark.parametrize("pure", [True, False])
def test_a_grader_that_breaks_fails_the_grade_and_is_logged(
    *, pure: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(context: Context) -> Outcome:
        return context.item["no such key"]

    async def act(context: Context, _trace: Trace) -> Outcome:
        return broken(context)

    stand_in(monkeypatch, slow=Computing(broken) if pure else Acting(act))
    graded = asyncio.run(Engine(SLOW_AND_FAST).grade({"output_text": ""}, {"answer": ""}))
    outcome = graded.outcome
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame, outcome.grader) == (
        "internal_error",
        "infrastructure",
        "slow",
    )
    assert "KeyError: 'no such key'" in outcome.detail
    assert outcome.sub_scores == {"fast": 1.0}
    assert "no such key" in caplog.text, "the log says where"


def test_traces_say_how_each_grader_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_context: Context, _trace: Trace) -> Outcome:
        raise GradeError("model_grader_refusal_error", "No.")

    async def shy(_context: Context, _trace: Trace) -> Outcome:
        return Abstain("no opinion")

    async def clipped(_context: Context, trace: Trace) -> Outcome:
        return Score(1.0, notes=(Note(trace.grader, "other_error", "Out of range."),))

    names = {"refuse": refuse, "shy": shy, "clipped": clipped}
    stand_in(monkeypatch, **{name: Acting(act) for name, act in names.items()})
    children = {name: string_check(name=name) for name in names}
    unread = string_check(input="{{sample.output_json.a}}", invalid_grade=0.5)
    spec = multi({**children, "unread": unread}, "clipped")
    graded = asyncio.run(Engine(spec).grade({"output_text": "no"}, {"answer": ""}))
    ended = {t.grader: (t.score, t.failure, t.detail) for t in graded.traces}
    assert ended == {
        "reward": (None, "model_grader_refusal_error", "No."),
        "refuse": (None, "model_grader_refusal_error", "No."),
        "shy": (None, None, "no opinion"),
        "clipped": (1.0, "other_error", "Out of range."),
        "unread": (0.5, "sample_parse_error", ended["unread"][2]),
    }
    assert [Trace.from_wire(t.wire()) for t in graded.traces] == list(graded.traces)


# --- turns ------------------------------------------------------------------------------------


def test_a_grader_takes_on_as_many_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    active = most = 0

    async def act(_context: Context, _trace: Trace) -> Outcome:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.001)
        active -= 1
        return Score(1.0)

    stand_in(monkeypatch, slow=Acting(act, concurrency=3))

    async def grade() -> None:
        engine = Engine(SLOW)
        await asyncio.gather(*(engine.grade({}, {}) for _ in range(20)))

    asyncio.run(grade())
    assert (most, active) == (3, 0)


def test_a_busy_grader_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    graded: list[str] = []

    async def fast(_context: Context, _trace: Trace) -> Outcome:
        graded.append("fast")
        return Score(1.0)

    stand_in(monkeypatch, slow=Acting(never, concurrency=1), quick=Acting(fast, concurrency=1))
    spec = multi({"slow": SLOW, "quick": string_check(name="quick")}, "slow + quick")

    async def grade() -> None:
        engine = Engine(spec)
        tasks = [asyncio.create_task(engine.grade({}, {})) for _ in range(20)]
        while len(graded) < len(tasks):
            await asyncio.sleep(0)
        await engine.close()
        outcomes = [(await task).outcome for task in tasks]
        assert all(isinstance(o, Failure) and o.sub_scores == {"quick": 1.0} for o in outcomes)

    asyncio.run(asyncio.wait_for(grade(), 60))


def test_a_hung_grader_is_ended_and_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(context: Context, trace: Trace) -> Outcome:
        return await never(context, trace) if context.item["hangs"] else Score(1.0)

    stand_in(monkeypatch, slow=Acting(act, concurrency=1, time_limit_s=0.05))

    async def grade() -> list[Any]:
        engine = Engine(multi({"slow": SLOW, "fast": json_schema({})}, "slow"))
        hung = [engine.grade({"output_text": "1"}, {"hangs": True}) for _ in range(2)]
        graded = await asyncio.gather(*hung, engine.grade({"output_text": "1"}, {"hangs": False}))
        assert not other_tasks()
        return graded

    first, second, third = asyncio.run(grade())
    for graded in (first, second):
        assert isinstance(graded.outcome, Failure)
        assert graded.outcome.kind == "unresponsive_reward_error"
        assert graded.outcome.detail == "The grader gave no answer within 0.05 s."
        assert graded.outcome.sub_scores == {"fast": 1.0}
    assert third.outcome.value == 1.0
    # The second waited for the first, which is not its own time.
    assert second.latency_s > 1.5 * second.traces[1].latency_s


def test_a_time_out_of_the_grader_s_own_is_not_taken_for_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(_context: Context, _trace: Trace) -> Outcome:
        raise TimeoutError("of a socket")

    stand_in(monkeypatch, slow=Acting(act))
    outcome = asyncio.run(Engine(SLOW).grade({}, {})).outcome
    assert isinstance(outcome, Failure)
    assert outcome.kind == "internal_error"


# --- letting go -------------------------------------------------------------------------------


class Held:
    """Something that a grade holds open while it hangs."""

    def __init__(self) -> None:
        self.open = 0

    async def hang(self, _context: Context, _trace: Trace) -> Outcome:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        self.open += 1
        try:
            raise AssertionError(await reader.read())
        finally:
            writer.close()
            theirs.close()
            self.open -= 1


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def test_cancelling_frees_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    grader = Acting(held.hang, concurrency=2)
    stand_in(monkeypatch, slow=grader)

    async def grade() -> None:
        engine, before = Engine(SLOW_AND_FAST), _open_files()
        tasks = [asyncio.create_task(engine.grade({"output_text": ""}, {})) for _ in range(4)]
        await _until(lambda: held.open == 2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (held.open, other_tasks()) == (0, set())
        await asyncio.sleep(0)  # a transport closes its socket in the next round
        assert _open_files() == before
        grader.act = _one
        assert isinstance((await engine.grade({}, {"answer": ""})).outcome, Failure)
        await engine.close()

    asyncio.run(grade())
    assert grader.closed == 1


def test_closing_ends_what_is_going_on_as_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    stand_in(monkeypatch, slow=Acting(held.hang, concurrency=2))

    async def grade() -> list[Outcome]:
        engine, before = Engine(SLOW_AND_FAST), _open_files()
        tasks = [
            asyncio.create_task(engine.grade({"output_text": "x"}, {"answer": "x"}))
            for _ in range(4)
        ]
        await _until(lambda: held.open == 2)
        await engine.close()
        assert held.open == 0
        graded = [await task for task in tasks]
        assert not other_tasks()
        assert _open_files() == before
        late = await engine.grade({"output_text": "x"}, {"answer": "x"})
        return [g.outcome for g in [*graded, late]]

    outcomes = asyncio.run(grade())
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.grader) == ("unresponsive_reward_error", "slow")
        assert "closed" in outcome.detail
        assert outcome.sub_scores == {"fast": 1.0}


def test_slow_computation_after_the_close_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(_context: Context) -> Outcome:
        time.sleep(2 * running.SLOW_S)
        return Score(1.0)

    stand_in(monkeypatch, slow=Computing(compute))

    async def grade() -> list[Outcome]:
        engine = Engine(SLOW)
        outcomes = [(await engine.grade({}, {})).outcome for _ in range(2)]
        await engine.close()
        return [*outcomes, (await engine.grade({}, {})).outcome]

    *before, late = asyncio.run(grade())
    assert before == [Score(1.0), Score(1.0)]
    assert late == Failure("unresponsive_reward_error", "The grader is closed.", "slow")
