"""Graders whose behaviour a test decides, run by the real engine."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graders.base import Grader, PureGrader
from graders.outcome import Outcome
from graders.paths import Context
from graders.string_check import StringCheck
from graders.trace import Trace

Behaviour = Callable[[Context, Trace], Awaitable[Outcome]]


class Acting(Grader):
    """A grader that does what it is told, within the bounds that it is given."""

    def __init__(self, act: Behaviour, concurrency: int = 64, time_limit_s: float = 600.0) -> None:
        self.act = act
        self.concurrency = concurrency
        self.time_limit_s = time_limit_s
        self.closed = 0

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        return await self.act(context, trace)

    async def close(self) -> None:
        self.closed += 1


class Computing(PureGrader):
    """A grader that only computes what it is told."""

    def __init__(self, compute: Callable[[Context], Outcome]) -> None:
        self._compute = compute

    def score(self, context: Context, _trace: Trace) -> Outcome:
        return self._compute(context)


def stand_in(monkeypatch: pytest.MonkeyPatch, **by_name: Grader) -> None:
    """Let every `string_check` with one of these names be that grader instead."""
    build = StringCheck.build

    def built(spec: StringCheck, services: Any) -> Grader:
        return by_name[spec.name] if spec.name in by_name else build(spec, services)

    monkeypatch.setattr(StringCheck, "build", built)


async def never(_context: Context, _trace: Trace) -> Outcome:
    """Hang."""
    await asyncio.Event().wait()
    raise AssertionError("an event that no one sets was set")


def other_tasks() -> set[asyncio.Task[Any]]:
    """What still runs in this loop besides the caller."""
    return asyncio.all_tasks() - {asyncio.current_task()}
