"""What chat answers: OpenAI's form, whatever the model server says of its own."""

import json
from typing import Any

import httpx
import openai
import pytest

from tests.fakes.model_server import ModelServer

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "base-1", "messages": [{"role": "user", "content": "Hi"}]}
CALL = {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def events(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the chunks of a stream, having checked its end."""
    *chunks, end = [line for line in response.text.split("\n\n") if line]
    assert end == "data: [DONE]"
    return [json.loads(chunk.removeprefix("data: ")) for chunk in chunks]


def test_an_answer_has_openais_fields_and_no_others(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=BODY).json()
    message = {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    assert answer == {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "base-1-2024",
        "choices": [choice],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
    }


def test_the_strict_client_takes_calls_and_log_probabilities(
    client: openai.OpenAI, model_server: ModelServer
) -> None:
    model_server.message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    answer = client.chat.completions.create(**BODY, n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None and calls[0].to_dict() == CALL


def test_usage_of_a_stream_is_told_when_asked_for(http: httpx.Client) -> None:
    silent = events(http.post(CHAT, json={**BODY, "stream": True}))
    assert all("usage" not in chunk for chunk in silent)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = events(http.post(CHAT, json={**BODY, **options}))
    assert all(chunk["usage"] is None for chunk in chunks)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 5)
    assert {chunk["service_tier"] for chunk in chunks} == {"default"}
    assert chunks[0]["choices"][0] == {
        "index": 0,
        "delta": {"role": "assistant", "content": "Hel"},
        "finish_reason": None,
        "logprobs": None,
    }


def test_characters_that_look_like_line_ends_stay_inside_of_a_chunk(
    http: httpx.Client, model_server: ModelServer
) -> None:
    text = "a\u2028b\u0085c"
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    chunk = {"id": "c", "created": 1, "model": "m", "choices": [choice]}
    # Not escaped, as vLLM sends it.
    stream = f"data: {json.dumps(chunk, ensure_ascii=False)}\n\ndata: [DONE]\n\n"
    model_server.answer = httpx.Response(200, content=stream.encode())
    response = http.post(CHAT, json={**BODY, "stream": True})
    assert response.text.isascii()
    assert events(response)[0]["choices"][0]["delta"]["content"] == text


def test_an_engine_that_dies_in_a_stream_is_an_error_without_its_words(
    client: openai.OpenAI, model_server: ModelServer
) -> None:
    model_server.dies = True
    received = []
    with pytest.raises(openai.APIError, match="failed in the middle") as caught:
        for chunk in client.chat.completions.create(**BODY, stream=True):
            received.append(chunk.choices[0].delta.content)
    assert received == ["Hel"]
    assert "secret" not in str(caught.value.body)


@pytest.mark.parametrize(
    "content", [b"not json", b"{}", b'{"id": "c", "created": 1, "model": "m", "choices": [{}]}']
)
def test_an_answer_that_is_none_is_a_503(
    http: httpx.Client, model_server: ModelServer, content: bytes
) -> None:
    model_server.answer = httpx.Response(200, content=content)
    response = http.post(CHAT, json=BODY)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "serving_failed"


def test_the_code_of_a_refusal_is_passed_on(http: httpx.Client, model_server: ModelServer) -> None:
    said = {
        "message": "This model's maximum context length is 8 tokens.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    model_server.answer = httpx.Response(400, json={"error": said})
    response = http.post(CHAT, json=BODY)
    assert (response.status_code, response.json()["error"]) == (400, said)


def test_a_client_that_leaves_an_answer_that_is_not_streamed_ends_the_generation(
    http: httpx.Client, model_server: ModelServer
) -> None:
    model_server.hangs = True
    with pytest.raises(httpx.ReadTimeout):
        http.post(CHAT, json=BODY, timeout=0.5)
    assert model_server.left.wait(timeout=20)
