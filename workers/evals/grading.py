"""Grading the samples of one run in grader processes, which hold the judges' keys."""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from core.errors import ConfigurationError
from core.evals import GraderPart, grader_parts, passes
from core.events import storable
from core.judges import JudgeBook
from core.process.environment import clean_environment
from graders import frames
from graders.client import GraderProcess, start_grader_process
from graders.errors import GraderProcessError, WireError
from graders.outcome import Abstain, Failure, Score, from_wire
from graders.trace import Trace
from workers.evals.ending import RunFailed, TryAgain

#: The code of a criterion whose grader had no opinion.
ABSTAINED = "abstained"


class GraderLink:
    """One grader process, asked for many grades at a time. Open it with `start`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._receiver = asyncio.create_task(self._receive())

    async def grade(self, sample: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one request.

        Raises `WireError` for one that is too large, `TryAgain` when the process is gone.
        """
        number = next(self._numbers)
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            request = {"id": number, "sample": sample, "item": item, "group": None}
            self._writer.write(frames.encode(request))
            await self._writer.drain()
            return await answered
        except ConnectionError as error:
            raise TryAgain(f"The grader process is gone: {error}.") from error
        finally:
            self._waiting.pop(number, None)

    async def aclose(self) -> None:
        """Close the connection; what is not graded yet is dropped."""
        self._receiver.cancel()
        await asyncio.gather(self._receiver, return_exceptions=True)
        self._writer.close()

    async def _receive(self) -> None:
        reason = "it closed the connection"
        try:
            while True:
                header = await self._reader.readexactly(frames.HEADER.size)
                body = await self._reader.readexactly(frames.length(header))
                reply = frames.decode(body)
                if "error" in reply:
                    reason = f"it refused a frame: {reply['error']}"
                    return
                answered = self._waiting.get(reply["id"])
                if answered is not None and not answered.done():
                    answered.set_result(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except WireError as error:
            reason = str(error)
        finally:
            for answered in self._waiting.values():
                if not answered.done():
                    answered.set_exception(TryAgain(f"The grader process is gone: {reason}."))


class Graders:
    """The grader processes of one run's criteria; use as a context."""

    def __init__(self, criteria: Sequence[dict[str, Any]], judges: JudgeBook) -> None:
        self._criteria, self._judges = list(criteria), judges
        self._links: list[tuple[GraderPart, GraderLink]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Graders":
        try:
            for part in grader_parts(self._criteria):
                self._links.append((part, await self._start(part)))
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._stack.aclose()

    async def grade(self, sample: dict[str, Any], item: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what each criterion says of a sample, in their order.

        A result has a `score` and `passed`, or an `error` with a code and a sentence. Raises like
        `GraderLink.grade`.
        """
        asked = (link.grade(sample, item) for _, link in self._links)
        replies = await asyncio.gather(*asked)
        found: dict[str, dict[str, Any]] = {}
        for (part, _), reply in zip(self._links, replies, strict=True):
            found |= _verdicts(part, reply)
        return [result_of(each, found[each["id"]]) for each in self._criteria]

    async def _start(self, part: GraderPart) -> GraderLink:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rft-eval-"))
        try:
            keys = self._judges.environment(part.grader)
        except ConfigurationError as error:
            raise RunFailed("invalid_grader", error.message) from error
        environment = {**clean_environment(os.environ), **keys}
        try:
            process: GraderProcess = await asyncio.to_thread(
                start_grader_process, part.grader, folder, env=environment
            )
        except GraderProcessError as error:
            _, refused, reason = str(error).partition("The grader is refused: ")
            if refused:
                raise RunFailed("invalid_grader", f"A criterion is refused: {reason}") from error
            raise TryAgain(str(error)) from error
        self._stack.push_async_callback(asyncio.to_thread, process.close)
        try:
            reader, writer = await asyncio.open_unix_connection(str(process.socket_path))
        except OSError as error:
            raise TryAgain(f"The grader process is gone: {error}.") from error
        link = GraderLink(reader, writer)
        self._stack.push_async_callback(link.aclose)
        return link


def ungraded(criteria: Sequence[dict[str, Any]], code: str, message: str) -> list[dict[str, Any]]:
    """Return the results of an item without a sample: every criterion is without a score."""
    error = {"error": {"code": code, "message": message}}
    return [result_of(each, error) for each in criteria]


def result_of(criterion: dict[str, Any], verdict: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of one criterion's verdict: a `score`, or an `error`."""
    score, error = verdict.get("score"), verdict.get("error")
    return {
        "id": criterion["id"],
        "name": criterion["name"],
        "type": criterion["type"],
        "score": score,
        "passed": score is not None and passes(criterion, score),
        "sample": verdict.get("sample"),
        "error": error and {name: storable(text) for name, text in error.items()},
    }


def _verdicts(part: GraderPart, reply: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the verdict of each criterion that a process graded, by the criterion's id."""
    if list(part.keys) == [""]:
        traces = [Trace.from_wire(each) for each in reply["traces"]]
        return {part.keys[""]: outcome_verdict(reply["outcome"], traces)}
    by_key = {each["grader"]: Trace.from_wire(each) for each in reply["traces"]}
    nothing = Trace("", "", failure="unresponsive_reward_error", detail="It was not graded.")
    return {id: _trace_verdict(by_key.get(key, nothing)) for key, id in part.keys.items()}


def outcome_verdict(outcome: dict[str, Any], traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the verdict that an outcome is, with what the graders said on the way."""
    said = _said(traces)
    match from_wire(outcome):
        case Score(value, sub_scores, _):
            if sub_scores:
                said = {**(said or {}), "sub_scores": dict(sub_scores)}
            return {"score": value, "sample": said}
        case Failure(kind, detail, _, _):
            return {"error": {"code": kind, "message": detail}, "sample": said}
        case Abstain(reason):
            return {"error": {"code": ABSTAINED, "message": reason}, "sample": said}


def _trace_verdict(trace: Trace) -> dict[str, Any]:
    said = _said([trace])
    if trace.score is not None:
        return {"score": trace.score, "sample": said}
    error = {"code": trace.failure or ABSTAINED, "message": trace.detail or "It has no opinion."}
    return {"error": error, "sample": said}


def _said(traces: Sequence[Trace]) -> dict[str, Any] | None:
    """Return what judges and code said, with the tokens that it took; None for mere computing."""
    told = [_of_trace(trace) for trace in traces if trace.output is not None or trace.model]
    if len(told) <= 1:
        return told[0] if told else None
    return {"graders": told}


def _of_trace(trace: Trace) -> dict[str, Any]:
    usage = None
    if trace.usage is not None:
        usage = {**vars(trace.usage), "total_tokens": trace.usage.total_tokens}
    return {
        "grader": trace.grader,
        "model": trace.model,
        "output": storable(trace.output) if trace.output is not None else None,
        "usage": usage,
        "cached": trace.cached,
        "latency_s": trace.latency_s,
    }
