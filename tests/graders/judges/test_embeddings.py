"""Embeddings: few requests, each text once, order kept."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bench.fake_judge import FakeJudge, Reply, Script, Seen
from graders.errors import GradeError, SpecError
from graders.judges import embeddings
from graders.judges.embeddings import BATCH
from graders.services import Services
from tests.graders.judging import services


def talk(
    script: Script, talks: Callable[[Services], Awaitable[Any]], **changes: Any
) -> tuple[Any, FakeJudge]:
    with FakeJudge(script) as server:

        async def run() -> Any:
            made = Services(services(server, **changes))
            try:
                return await talks(made)
            finally:
                await made.close()

        return asyncio.run(run()), server


ANSWER = [Reply()]


def test_vectors_come_in_the_order_of_the_texts() -> None:
    async def talks(made: Services) -> Any:
        return await made.embeddings.vectors("m", ["b", "aab", "b", ""])

    vectors, server = talk(ANSWER, talks)
    assert [vector[:2] for vector in vectors] == [[0, 1], [2, 1], [0, 1], []]
    [seen] = server.requests
    assert seen.path == "/v1/embeddings"
    assert seen.body == {"model": "m", "input": ["b", "aab"], "encoding_format": "float"}


def test_texts_wanted_together_travel_together() -> None:
    async def talks(made: Services) -> Any:
        wanted = (made.embeddings.vectors("m", [f"text {n}", "reference"]) for n in range(50))
        return await asyncio.gather(*wanted)

    _, server = talk(ANSWER, talks)
    assert [len(seen.body["input"]) for seen in server.requests] == [51]


def test_known_texts_are_not_asked_for_again() -> None:
    async def talks(made: Services) -> Any:
        first = await made.embeddings.vectors("m", ["a"])
        return first, await made.embeddings.vectors("m", ["a"])

    (first, second), server = talk(ANSWER, talks)
    assert first == second
    assert len(server.requests) == 1


def test_many_texts_take_several_requests() -> None:
    async def talks(made: Services) -> Any:
        return await made.embeddings.vectors("m", [str(n) for n in range(BATCH + 2)])

    vectors, server = talk(ANSWER, talks)
    assert len(vectors) == BATCH + 2
    assert sorted(len(seen.body["input"]) for seen in server.requests) == [2, BATCH]


def test_a_text_that_the_server_refuses_fails_alone() -> None:
    def script(seen: Seen) -> Reply:
        return Reply(status=400 if "too long" in seen.body["input"] else 200)

    async def talks(made: Services) -> Any:
        wanted = [made.embeddings.vectors("m", [text]) for text in ("a", "too long", "b", "c")]
        return await asyncio.gather(*wanted, return_exceptions=True)

    (first, refused, *others), _ = talk(script, talks)
    assert isinstance(refused, GradeError)
    assert "status 400: scripted failure" in refused.detail
    assert all(isinstance(found, list) for found in (first, *others))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [1]}] * 3},
        *({"data": data} for data in (None, 5, True, "ab", {"0": [1], "1": [1]}, [None, None])),
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [10**400]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [True]}]},
    ],
)
def test_answer_that_is_not_a_vector_for_each_text(body: Any) -> None:
    async def talks(made: Services) -> Any:
        with pytest.raises(GradeError, match="not one vector for each text"):
            await made.embeddings.vectors("m", ["a", "b"])

    talk([Reply(body=json.dumps(body).encode())], talks)


def test_a_bug_is_told_to_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(embeddings, "_vectors", broken)

    async def talks(made: Services) -> Any:
        async with asyncio.timeout(5):
            with pytest.raises(RuntimeError, match="a bug"):
                await made.embeddings.vectors("m", ["a"])

    talk(ANSWER, talks)


def test_a_failure_is_not_kept() -> None:
    async def talks(made: Services) -> Any:
        with pytest.raises(GradeError):
            await made.embeddings.vectors("m", ["a"])
        return await made.embeddings.vectors("m", ["a"])

    vectors, _ = talk([Reply(status=503), Reply()], talks, attempts=1)
    assert vectors[0][0] == 1


def test_one_caller_who_leaves_takes_nothing_from_the_others() -> None:
    async def talks(made: Services) -> Any:
        leaving = asyncio.create_task(made.embeddings.vectors("m", ["a"]))
        staying = asyncio.create_task(made.embeddings.vectors("m", ["a"]))
        await asyncio.sleep(0.05)
        leaving.cancel()
        return await staying

    vectors, server = talk([Reply(delay_s=0.2)], talks)
    assert vectors[0][0] == 1
    assert len(server.requests) == 1


def test_judge_for_chat_only_has_no_vectors() -> None:
    async def talks(made: Services) -> Any:
        with pytest.raises(SpecError, match="Unknown embeddings model 'm'; known: none"):
            await made.embeddings.vectors("m", ["a"])

    talk(ANSWER, talks, does=("chat",))
