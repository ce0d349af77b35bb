"""Asking a judge until its reply can be used: once, and once more when it cannot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from graders.errors import GradeError
from graders.judges.judge import ChatMessage, Completion, Judge, JudgeError
from graders.judges.replies import ReplyError
from graders.trace import Trace, Usage

Verdict = TypeVar("Verdict")


async def consult(
    judge: Judge,
    messages: Sequence[ChatMessage],
    read: Callable[[str], Verdict],
    *,
    schema: Mapping[str, Any],
    sampling: Mapping[str, Any],
    trace: Trace,
) -> Verdict:
    """Return what `read` makes of the judge's reply.

    When it raises `ReplyError` the judge is told why and asked once more. Requests, tokens and the
    last reply are added to `trace`. Raises `GradeError`.
    """
    first = await _ask(judge, messages, schema, sampling, trace)
    try:
        return read(first.text)
    except ReplyError as error:
        if first.cut:
            raise _cut(judge, error) from error
        again = [*messages, *_correction(first.text, str(error))]
    second = await _ask(judge, again, schema, sampling, trace)
    try:
        return read(second.text)
    except ReplyError as error:
        if second.cut:
            raise _cut(judge, error) from error
        detail = f"Judge {judge.model}, asked twice: {error}."
        raise GradeError("model_grader_parse_error", detail) from error


async def _ask(
    judge: Judge,
    messages: Sequence[ChatMessage],
    schema: Mapping[str, Any],
    sampling: Mapping[str, Any],
    trace: Trace,
) -> Completion:
    try:
        completion = await judge.complete(messages, schema=schema, sampling=sampling)
    except JudgeError as error:
        trace.attempts += error.attempts
        raise
    trace.attempts += completion.attempts
    trace.usage = added(trace.usage, completion.usage)
    trace.keep(completion.text or completion.refusal or "")
    if completion.refusal is not None:
        detail = f"Judge {judge.model} refused: {completion.refusal[:300]}"
        raise GradeError("model_grader_refusal_error", detail)
    return completion


def begin(trace: Trace, judge: Judge) -> None:
    """Note in a grader's trace which judge it asks; nothing has been sent yet."""
    trace.model, trace.attempts = judge.model, 0


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """The tokens of two requests together."""
    if one is None or other is None:
        return one or other
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cached_tokens + other.cached_tokens,
    )


def _correction(text: str, reason: str) -> list[ChatMessage]:
    request = f"That answer cannot be used: {reason}. Answer again, in the form asked for."
    # Some servers refuse an empty message; then the question is simply asked again.
    if not text.strip():
        return []
    return [{"role": "assistant", "content": text}, {"role": "user", "content": request}]


def _cut(judge: Judge, error: ReplyError) -> GradeError:
    detail = (
        f"Judge {judge.model} ran into its token limit before the end of its answer ({error}); "
        "raise sampling_params.max_completions_tokens."
    )
    return GradeError("model_grader_parse_error", detail)
