"""Embeddings of texts through an OpenAI-compatible server.

Texts that are wanted at the same moment travel in one request, and each is asked for once.
"""

import asyncio
import json
import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeAlias

from graders.http import Answer
from graders.judges.judge import Judge, JudgeError, Judges

#: Most texts of one request, and how many vectors are kept.
BATCH, KEPT = 128, 4096
#: Answers that may be about one text of many.
_UNUSABLE_TEXT = (400, 413, 422)

Vector: TypeAlias = list[float]
_Wanted: TypeAlias = "dict[str, asyncio.Future[Vector]]"


class Embeddings:
    """Vectors by model and text."""

    def __init__(self, judges: Judges) -> None:
        self._judges = judges
        self._known: OrderedDict[tuple[str, str], asyncio.Future[Vector]] = OrderedDict()
        self._waiting: dict[Judge, _Wanted] = {}
        self._requests: set[asyncio.Task[None]] = set()

    async def vectors(self, model: str, texts: Sequence[str]) -> list[Vector]:
        """The vectors of the texts, in their order; an empty text, which servers refuse, has none.

        Raises `SpecError` for an unknown model and `GradeError` (`model_grader_server_error`).
        """
        judge = self._judges.get(model, does="embeddings")
        futures = {text: self._future(judge, text) for text in dict.fromkeys(texts) if text}
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        # Shielded: a vector that one caller no longer wants may be what another waits for.
        found = {text: await asyncio.shield(future) for text, future in futures.items()}
        return [found.get(text, []) for text in texts]

    async def close(self) -> None:
        """Drop the requests that are under way."""
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    def _future(self, judge: Judge, text: str) -> "asyncio.Future[Vector]":
        key = (judge.model, text)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        future: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        self._known[key] = future
        if judge not in self._waiting:
            self._waiting[judge] = {}
            # It starts after everything that is ready to run now has said what it wants.
            self._start(self._flush(judge))
        self._waiting[judge][text] = future
        return future

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _flush(self, judge: Judge) -> None:
        wanted = list(self._waiting.pop(judge).items())
        for start in range(0, len(wanted), BATCH):
            self._start(self._fetch(judge, dict(wanted[start : start + BATCH])))

    async def _fetch(self, judge: Judge, wanted: _Wanted) -> None:
        texts = list(wanted)
        try:
            answer = await judge.send("/embeddings", {"input": texts, "encoding_format": "float"})
            if answer.status in _UNUSABLE_TEXT and len(texts) > 1:
                # One text may be too long for the server; the others are not to pay for it.
                half = len(texts) // 2
                for part in (texts[:half], texts[half:]):
                    await self._fetch(judge, {text: wanted[text] for text in part})
                return
            vectors = _vectors(judge, answer, len(texts))
        except (Exception, asyncio.CancelledError) as error:
            # Whatever it is, those who wait must hear of it, or they wait for ever.
            for text, future in wanted.items():
                if not future.done():
                    self._known.pop((judge.model, text), None)
                    _fail(future, error)
            return
        for future, vector in zip(wanted.values(), vectors, strict=True):
            future.set_result(vector)


def _vectors(judge: Judge, answer: Answer, count: int) -> list[Vector]:
    judge.require_success(answer)
    vectors = _read(answer, count)
    if vectors is None:
        detail = f"Judge {judge.model} sent something that is not one vector for each text."
        raise JudgeError(detail, attempts=answer.attempts)
    return vectors


def _read(answer: Answer, count: int) -> list[Vector] | None:
    data = json.loads(answer.body).get("data")
    if not isinstance(data, list) or len(data) != count:
        return None
    vectors: dict[int, Vector] = {}
    for entry in data:
        match entry:
            case {"index": int(index), "embedding": [*numbers]} if _are_finite(numbers):
                vectors[index] = [float(number) for number in numbers]
    lengths = {len(vector) for vector in vectors.values()}
    if vectors.keys() != set(range(count)) or len(lengths) != 1:
        return None
    return [vectors[index] for index in range(count)]


def _are_finite(numbers: list[Any]) -> bool:
    # Compared, not converted: JSON's integers may be too large for a float.
    return all(type(n) in (int, float) and abs(n) <= sys.float_info.max for n in numbers)


def _fail(future: "asyncio.Future[Vector]", error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
        return
    future.set_exception(error)
    # Read here once: asyncio complains about errors that nobody read, and no one may be left.
    future.exception()
