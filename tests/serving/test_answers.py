"""vLLM's answers and refusals, on their way to the API."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from workers.serving import answers
from workers.serving.requests import CHAT, TEXT
from workers.serving.target import Target


def choice(index: int, *logprobs: float) -> dict[str, Any]:
    """An answer with the log-probabilities of its tokens."""
    return {"index": index, "text": str(index), "logprobs": {"token_logprobs": list(logprobs)}}


def test_the_best_are_the_likeliest_by_token() -> None:
    choices = [choice(0, -3.0), choice(1, -1.0, -1.0), choice(2, -9.0)]
    more = [choice(3, -5.0), choice(4, -4.0), choice(5, -0.5)]
    kept = answers.best({"choices": [*more, *choices]}, {"n": 2, "best_of": 3})["choices"]
    assert [(each["index"], each["text"]) for each in kept] == [
        (0, "1"),
        (1, "0"),
        (2, "5"),
        (3, "4"),
    ]
    assert all(each["logprobs"] is None for each in kept)
    [first] = answers.best({"choices": choices}, {"best_of": 3, "logprobs": 0})["choices"]
    assert first["logprobs"] == {"token_logprobs": [-1.0, -1.0]}


def test_as_many_as_are_asked_for_need_no_choice() -> None:
    answer = {"choices": [choice(0, -3.0)]}
    assert answers.best(answer, {"best_of": 1}) is answer


@pytest.mark.parametrize(
    ("said", "path", "told"),
    [
        (
            "This model's maximum context length is 8 tokens. (parameter=input_tokens, value=9)",
            CHAT,
            ("This model's maximum context length is 8 tokens.", "messages"),
        ),
        (
            "max_tokens=9 cannot be greater than max_model_len=8. Please request fewer.",
            TEXT,
            (
                "The answer may not be longer than the model's context of 8 tokens; ask for fewer"
                " tokens.",
                "max_tokens",
            ),
        ),
        (
            "max_completion_tokens=9 cannot be greater than max_model_len=8. Please request fewer.",
            CHAT,
            (
                "The answer may not be longer than the model's context of 8 tokens; ask for fewer"
                " tokens.",
                "max_completion_tokens",
            ),
        ),
        (
            "Grammar error: regex parse error:\n    (\n    ^\nerror: unclosed group",
            CHAT,
            (
                "The JSON Schema cannot guide the model: regex parse error: ( ^ error: unclosed"
                " group; leave that out.",
                "response_format",
            ),
        ),
        (
            "Invalid grammar specification: 'triggers'",
            CHAT,
            (
                "A JSON Schema in 'response_format' cannot guide the model; check its types and"
                " words.",
                "response_format",
            ),
        ),
        (
            "own is not a multimodal model",
            CHAT,
            ("This model reads text only; leave the images out.", "messages"),
        ),
        (
            'Grammar error: Unimplemented keys: ["uniqueItems"]',
            CHAT,
            (
                'The JSON Schema cannot guide the model: Unimplemented keys: ["uniqueItems"];'
                " leave that out.",
                "response_format",
            ),
        ),
        ("n must be at least 1. (parameter=n, value=0)", CHAT, ("n must be at least 1.", None)),
    ],
)
def test_refusals_speak_to_users(said: str, path: str, told: tuple[str, str | None]) -> None:
    param = told[1] if said.startswith("max_") else None
    error = {"message": said, "type": "BadRequestError", "param": param, "code": 400}
    answer = json.loads(answers.refusal(json.dumps({"error": error}).encode(), path))["error"]
    too_long = "context" in told[0]
    assert "\n" not in answer["message"]
    assert (answer["message"], answer["param"]) == told
    assert answer["code"] == ("context_length_exceeded" if too_long else None)
    assert answer["type"] == "invalid_request_error"


def test_the_same_weights_have_the_same_fingerprint() -> None:
    base, trained = Target(base="b"), Target(base="b", artifact="a", kind="full")
    assert base.fingerprint("vllm 1") == base.fingerprint("vllm 1")
    others = {trained.fingerprint("vllm 1"), base.fingerprint("vllm 2")}
    assert len({base.fingerprint("vllm 1"), *others}) == 3
    assert base.fingerprint("vllm 1").startswith("fp_")


def read(*parts: bytes, fails: bool = False, only_prompt: bool = False) -> list[str]:
    """Return the lines of a stream that arrives in these parts."""

    async def content() -> AsyncIterator[bytes]:
        for part in parts:
            yield part
        if fails:
            raise httpx.ReadError("connection reset")

    async def main() -> list[str]:
        response = httpx.Response(200, content=content())
        events = answers.named_events(
            response, model="m", fingerprint="fp", only_prompt=only_prompt
        )
        return [line.decode().rstrip("\n") async for line in events if line.strip()]

    return asyncio.run(main())


def test_chunks_are_cut_at_line_feeds_only() -> None:
    event = 'data: {"text": "a\u2028b\u0085c"}\n\n'.encode()
    [line] = read(event[:20], event[20:])
    told = json.loads(line.removeprefix("data: "))
    assert told == {"text": "a\u2028b\u0085c", "model": "m", "system_fingerprint": "fp"}


def test_a_stream_of_the_prompt_alone_counts_no_answer() -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}
    events = [f"data: {json.dumps({'usage': each})}\n\n".encode() for each in (None, usage)]
    first, last = (json.loads(line[6:]) for line in read(*events, only_prompt=True))
    assert first["usage"] is None
    assert last["usage"] == {"prompt_tokens": 2, "completion_tokens": 0, "total_tokens": 2}


def test_a_broken_connection_is_a_last_event() -> None:
    first, last = read(b'data: {"text": "a"}\n\n', fails=True)
    assert json.loads(first.removeprefix("data: "))["text"] == "a"
    error = json.loads(last.removeprefix("data: "))["error"]
    assert (error["type"], error["code"]) == ("server_error", "engine_failed")


def test_errors_and_the_end_pass_unchanged() -> None:
    error = 'data: {"error": {"message": "dead"}}'
    assert read(f"{error}\n\ndata: [DONE]\n\n".encode()) == [error, "data: [DONE]"]
