"""Connections of the grader process: groups, back-pressure, and clients that leave."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graders import Engine, Outcome, Score, frames, process
from graders.paths import Context
from graders.process import Connections
from graders.trace import Trace
from tests.graders.examples import string_check
from tests.graders.stand_ins import Acting, never, other_tasks, stand_in

RANKED = string_check(name="ranked")


class Talk:
    """A connection to a grader process that runs in this loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def ask(self, number: int, *, group: Any = None, text: str = "x") -> None:
        sample = {"output_text": text}
        request = {"id": number, "sample": sample, "item": {"answer": "x"}, "group": group}
        self.writer.write(frames.encode(request))
        await self.writer.drain()

    async def reply(self) -> dict[str, Any]:
        header = await self._reader.readexactly(frames.HEADER.size)
        return frames.decode(await self._reader.readexactly(frames.length(header)))


@asynccontextmanager
async def _serving(path: Path) -> AsyncIterator[tuple[Talk, Connections]]:
    connections = Connections(Engine(RANKED))
    server = await asyncio.start_unix_server(connections.handle, str(path))
    reader, writer = await asyncio.open_unix_connection(str(path), limit=2**20)
    try:
        yield Talk(reader, writer), connections
    finally:
        writer.close()
        server.close()
        await connections.close()


def _run(talk: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await talk
        await asyncio.sleep(0.01)
        assert not other_tasks(), "everything that was started has ended"

    asyncio.run(bounded())


async def _until_stable(count: list[Any]) -> None:
    before = -1
    while len(count) != before:
        before = len(count)
        await asyncio.sleep(0.1)


async def _rank(contexts: list[Context]) -> list[Outcome]:
    return [Score(float(len(contexts)))] * len(contexts)


async def _ranked(context: Context, trace: Trace) -> Outcome:
    assert context.group is not None
    return await context.group.rank(trace.grader, context, _rank)


@pytest.fixture
def ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ranked=Acting(_ranked))


@pytest.mark.usefixtures("ranking")
def test_many_groups_may_arrive_interleaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the first member of every group: far more than are worked on at a time."""
    monkeypatch.setattr(process, "MAX_BYTES_IN_WORK", 20 * process.REQUEST_BYTES)

    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):
            for member in range(8):
                for group in range(64):
                    await client.ask(group * 8 + member, group={"id": group, "size": 8})
            replies = [await client.reply() for _ in range(512)]
            assert {r["id"] for r in replies} == set(range(512))
            assert {r["outcome"]["value"] for r in replies} == {8.0}

    _run(talk())


@pytest.mark.usefixtures("ranking")
def test_the_number_of_a_group_may_be_used_again(tmp_path: Path) -> None:
    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):
            for number in range(6):
                await client.ask(number, group={"id": 1, "size": 2})
            assert sorted([(await client.reply())["id"] for _ in range(6)]) == list(range(6))

    _run(talk())


@pytest.mark.usefixtures("ranking")
@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ({"id": 1, "size": 3}, "Group 1 was announced with 2 members, and now with 3"),
        ({"id": 1, "size": 0}, "a positive 'size'"),
        ({"id": "1", "size": 2}, "an integer 'id'"),
        ([1, 2], "needs an integer 'id'"),
    ],
)
def test_a_group_that_contradicts_itself_is_refused(
    tmp_path: Path, group: Any, reason: str
) -> None:
    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):
            await client.ask(1, group={"id": 1, "size": 2})
            await client.ask(2, group=group)
            refusal = await client.reply()
            assert (refusal["id"], reason in refusal["error"]) == (None, True), refusal

    _run(talk())


@pytest.mark.usefixtures("ranking")
def test_a_client_that_leaves_an_unfinished_group_leaves_nothing(tmp_path: Path) -> None:
    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):
            for number in range(7):
                await client.ask(number, group={"id": 1, "size": 8})
            client.writer.close()
            while len(other_tasks()) > 0:
                await asyncio.sleep(0.01)

    _run(talk())


def test_a_client_that_leaves_frees_what_its_grades_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed = []

    async def hang(context: Context, trace: Trace) -> Outcome:
        try:
            return await never(context, trace)
        finally:
            freed.append(context)

    stand_in(monkeypatch, ranked=Acting(hang))

    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):
            for number in range(3):
                await client.ask(number)
            await asyncio.sleep(0.05)
            assert not freed
            client.writer.close()
            while len(freed) < 3:
                await asyncio.sleep(0.01)

    _run(talk())


def test_no_more_is_read_than_is_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is ahead is held up, and missed when it leaves although nothing is read."""
    monkeypatch.setattr(process, "MAX_BYTES_IN_WORK", 2**20)
    monkeypatch.setattr(process, "HANG_UP_CHECK_S", 0.05)
    begun, freed = [], []

    async def hang(context: Context, trace: Trace) -> Outcome:
        begun.append(context)
        try:
            return await never(context, trace)
        finally:
            freed.append(context)

    stand_in(monkeypatch, ranked=Acting(hang, concurrency=1_000))

    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, _):

            async def ask_on() -> None:
                for number in range(100):
                    await client.ask(number, text="x" * 100_000)

            asking = asyncio.create_task(ask_on())
            await _until_stable(begun)
            assert len(begun) == 10
            assert not asking.done()
            asking.cancel()
            client.writer.transport.abort()
            while len(freed) < len(begun):
                await asyncio.sleep(0.01)

    _run(talk())


def test_closing_the_process_ends_its_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, ranked=Acting(never))

    async def talk() -> None:
        async with _serving(tmp_path / "s") as (client, connections):
            await client.ask(1)
            await asyncio.sleep(0.05)
            await connections.close()
            with pytest.raises(asyncio.IncompleteReadError):
                await client.reply()

    _run(talk())
