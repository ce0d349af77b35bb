"""Plain completions: what is passed on, refused and answered."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import openai

from tests.api.examples import error_of
from tests.api.running import Api, ClientFor
from tests.fakes.model_server import ModelServer

PATH = "/v1/completions"
BODY: dict[str, Any] = {"model": "base-1", "prompt": "One two"}


def test_an_answer_has_openais_fields_and_no_others(http: httpx.Client) -> None:
    answer = http.post(PATH, json=BODY).json()
    choice = {"index": 0, "text": "Hello", "finish_reason": "stop", "logprobs": None}
    assert answer.pop("usage")["total_tokens"] == 5
    assert answer == {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "base-1-2024",
        "choices": [choice],
        "system_fingerprint": "fp_0123456789",
    }


def test_the_strict_client_takes_the_answer(
    client: openai.OpenAI, model_server: ModelServer
) -> None:
    answer = client.completions.create(**BODY, n=2, max_tokens=5)
    assert [choice.text for choice in answer.choices] == ["Hello", "Hello"]
    assert model_server.requests[-1].url.path == PATH
    assert model_server.body == {
        "model": "base-1-2024",
        "prompt": "One two",
        "n": 2,
        "max_tokens": 5,
    }


def test_every_form_of_prompt_is_passed_on(http: httpx.Client, model_server: ModelServer) -> None:
    options = {"best_of": 3, "echo": None, "logprobs": 0, "suffix": None, "seed": 3, "user": "u"}
    for prompt in ("a", ["a", "b"], [1, 2], [[1], [2, 3]]):
        assert http.post(PATH, json={**BODY, "prompt": prompt, **options}).status_code == 200
        passed_on = {"prompt": prompt, "best_of": 3, "logprobs": 0, "seed": 3}
        assert model_server.body == {"model": "base-1-2024", **passed_on}


#: Changes to a good body, with what the error names.
REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": ["a", ""]}, "prompt"),
    ({"prompt": ["a", 1]}, "prompt"),
    ({"prompt": [True]}, "prompt"),
    ({"prompt": [[]]}, "prompt[0]"),
    ({"prompt": [["a"]]}, "prompt[0][0]"),
    ({"prompt": [[1], [-1]]}, "prompt[1][0]"),
    ({"prompt": [10**30]}, "prompt[0]"),
    ({"prompt": {"text": "a"}}, "prompt"),
    ({"prompt": ["a"] * 129}, "prompt"),
    ({"suffix": "end"}, "suffix"),
    ({"logprobs": 6}, "logprobs"),
    ({"best_of": 21}, "best_of"),
    ({"best_of": 2, "n": 3}, "best_of"),
    ({"best_of": 2, "stream": True}, "best_of"),
    ({"best_of": 2, "echo": True}, "best_of"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"messages": []}, "messages"),
]


def test_refusals(http: httpx.Client, model_server: ModelServer) -> None:
    for change, named in REFUSALS:
        error = error_of(http.post(PATH, json={**BODY, **change}), 400)
        assert f"'{named}'" in error["message"], change
        assert error["message"].count("Invalid value") <= 1, change
    assert not model_server.requests


def test_a_stream_in_the_older_form(client_for: ClientFor, api: Api) -> None:
    loose = client_for(api.key, strict=False)
    chunks = list(loose.completions.create(**BODY, stream=True))
    assert [chunk.choices[0].text for chunk in chunks] == ["Hel", "lo"]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, "stop"]


def test_a_stream_tells_the_usage_at_its_end(http: httpx.Client) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *_, last, end, _ = http.post(PATH, json={**BODY, **options}).text.split("\n\n")
    assert end == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["usage"]["total_tokens"] == 5


def test_it_takes_the_scope_of_inference(new_key: Callable[..., str], api: Api) -> None:
    for scope, status in (("inference", 404), ("write", 403)):
        headers = {"authorization": f"Bearer {new_key(scope)}"}
        answer = httpx.post(f"{api.url}{PATH}", json={**BODY, "model": "x"}, headers=headers)
        assert answer.status_code == status


def test_the_first_token_of_an_echoed_prompt_has_no_log_probability(
    http: httpx.Client, model_server: ModelServer
) -> None:
    logprobs = {
        "tokens": ["a", "b"],
        "token_logprobs": [None, -0.5],
        "top_logprobs": [None, {"b": -0.5}],
        "text_offset": [0, 1],
    }
    choice = {"index": 0, "text": "ab", "finish_reason": "length", "logprobs": logprobs}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "c", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    model_server.answer = httpx.Response(200, json=answer)
    shown = http.post(PATH, json={**BODY, "echo": True, "logprobs": 1}).json()
    assert shown["choices"][0]["logprobs"] == logprobs
