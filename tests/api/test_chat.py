"""Chat: which weights are asked for, what is passed on, and how failures reach the client."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.services.answers import CHAT as CHAT_FORM
from api.services.generating import EventStream
from api.services.serving import Serving, Target
from tests.api.examples import add_checkpoint, error_of, job_body, set_status, upload
from tests.fakes.model_server import ModelServer

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "base-1", "messages": [{"role": "user", "content": "Hi"}]}

TOOL = {"type": "function", "function": {"name": "f"}}


#: A schema with a property of an odd name, and a reference that the server would have to follow.
ELSEWHERE: dict[str, Any] = {"properties": {"$ref": {"$ref": "http://10.0.0.1/schema"}}}
PNG = "data:image/png;base64,AA=="


def allowed(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """A choice among some tools."""
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}}


def image_part(url: str) -> dict[str, Any]:
    """A part of a message that is an image."""
    return {"type": "image_url", "image_url": {"url": url}}


def test_a_base_model_is_asked_for_under_its_id(
    http: httpx.Client, model_server: ModelServer
) -> None:
    assert http.post(CHAT, json=BODY).status_code == 200
    assert model_server.model_header == {"base": "base-1-2024", "artifact": None, "kind": None}
    assert model_server.requests[-1].headers["x-rft-token"] == "serving-token"
    assert model_server.body == {**BODY, "model": "base-1-2024"}
    assert "authorization" not in model_server.requests[-1].headers


def test_a_checkpoint_is_asked_for_by_its_objects(
    client: openai.OpenAI, model_server: ModelServer, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 4, name="ft:a:ckpt-step-4")
    answer = client.chat.completions.create(**{**BODY, "model": "ft:a:ckpt-step-4"})
    assert answer.model == "ft:a:ckpt-step-4"
    prefix = f"jobs/{job.id}/checkpoints/4"
    assert model_server.model_header == {
        "base": "base-1-2024",
        "artifact": prefix,
        "kind": "adapter",
    }


def test_what_was_sent_is_passed_on_and_nothing_is_added(
    http: httpx.Client, model_server: ModelServer
) -> None:
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "n": 2,
        "stop": ["a", "b"],
        "seed": 1,
        "logprobs": True,
        "top_logprobs": 3,
        "max_completion_tokens": 9,
        "presence_penalty": -1.5,
        "response_format": {"type": "json_object"},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": None}}}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "logit_bias": {"5": -100},
    }
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "t"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "developer", "content": "d"},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    body = {"model": "base-1-2024", "messages": messages, **options}
    without_effect = {"user": "u", "store": False, "metadata": {"a": "b"}, "service_tier": "auto"}
    assert http.post(CHAT, json={**body, **without_effect}).status_code == 200
    assert model_server.body == body


#: Changes to a good body, with what the error names; "" where it concerns several fields.
REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
    ({"temperature": 2.1}, "temperature"),
    ({"top_p": -0.1}, "top_p"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"stream": "yes"}, "stream"),
    ({"store": True}, "store"),
    ({"service_tier": "flex"}, "service_tier"),
    ({"audio": {"voice": "alloy"}}, "audio"),
    ({"top_logprobs": 2}, ""),
    ({"tool_choice": "required"}, ""),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, ""),
    ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": ELSEWHERE}}]},
        "tools[0].function.parameters",
    ),
    (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "s", "schema": {"$defs": {"a": [ELSEWHERE]}}},
            }
        },
        "response_format.json_schema.schema",
    ),
    ({"logit_bias": {"the": 5}}, "logit_bias.the"),
    ({"logit_bias": {"5": 101}}, "logit_bias.5"),
    ({"stop": []}, "stop"),
    ({"stop": ["a", ""]}, "stop[1]"),
    ({"stop": {"a": "b"}}, "stop"),
    ({"tools": [TOOL], "tool_choice": "requird"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": []}, "tool_choice"),
    ({"seed": 2**63}, "seed"),
    ({"stream_options": {"include_usage": True}}, ""),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0]"),
    ({"messages": [{"role": "assistant"}]}, "messages[0]"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0]",
    ),
    (
        {"messages": [{"role": "user", "content": [image_part("http://10.0.0.1/")]}]},
        "messages[0].content[0].image_url.url",
    ),
    ({"messages": [{"role": "system", "content": [image_part(PNG)]}]}, "messages[0]"),
    (
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": [image_part(PNG)]}]},
        "messages[0]",
    ),
    (
        {"tools": [TOOL], "tool_choice": allowed([{"type": "function"}])},
        "tool_choice.allowed_tools.tools[0].function",
    ),
    (
        {"tools": [TOOL], "tool_choice": allowed([TOOL | {"name": "f"}])},
        "tool_choice.allowed_tools.tools[0].name",
    ),
    ({"tools": [TOOL], "tool_choice": allowed([])}, "tool_choice.allowed_tools.tools"),
    ({"web_search_options": {}}, "web_search_options"),
    ({"functions": [{"name": "f"}]}, "functions"),
]


def test_refusals(http: httpx.Client, model_server: ModelServer) -> None:
    for change, param in REFUSALS:
        error = error_of(http.post(CHAT, json={**BODY, **change}), 400)
        # What concerns several fields names them in the sentence alone.
        assert error["param"] == (param or None), change
        assert f"'{param or next(iter(change))}'" in error["message"], change
        assert "''" not in error["message"], change
    assert not model_server.requests


def test_an_unknown_model(http: httpx.Client) -> None:
    error = error_of(http.post(CHAT, json={**BODY, "model": "bse-1"}), 404)
    expected = (
        "The model bse-1 does not exist or you do not have access to it. Did you mean 'base-1'?"
    )
    assert error["message"] == expected
    assert (error["param"], error["code"]) == (None, "model_not_found")


def test_a_deleted_model_does_not_answer(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 4, name="ft:a")
    set_status(sessions, job.id, "cancelled")
    client.models.delete("ft:a")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**{**BODY, "model": "ft:a"})


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_model_server_refuses_is_the_clients_to_mend(
    http: httpx.Client, model_server: ModelServer, stream: bool
) -> None:
    said = {"message": "too many tokens", "type": "BadRequestError", "param": None, "code": 400}
    model_server.answer = httpx.Response(400, json={"error": said})
    error = error_of(http.post(CHAT, json={**BODY, "stream": stream}), 400)
    assert (error["message"], error["code"]) == ("too many tokens", None)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500, text="Traceback secret"),
        httpx.Response(401, json={"error": {"message": "secret"}}),
        httpx.Response(404, json={"error": {"message": "secret"}}),
        httpx.Response(400, text="secret"),
    ],
)
def test_what_goes_wrong_behind_the_api_stays_behind_it(
    http: httpx.Client, model_server: ModelServer, answer: httpx.Response
) -> None:
    model_server.answer = answer
    response = http.post(CHAT, json=BODY)
    assert error_of(response, 503)["code"] == "serving_failed"
    assert "secret" not in response.text


@pytest.mark.parametrize("stream", [False, True])
def test_no_model_server(http: httpx.Client, model_server: ModelServer, stream: bool) -> None:
    model_server.down = True
    error = error_of(http.post(CHAT, json={**BODY, "stream": stream}), 503)
    assert error["code"] == "serving_unreachable"


def test_a_stream_that_breaks_ends_with_an_error_the_client_raises(
    client: openai.OpenAI, model_server: ModelServer
) -> None:
    model_server.breaks = True
    received = []
    with pytest.raises(openai.APIError, match="The model server does not answer"):
        for chunk in client.chat.completions.create(**BODY, stream=True):
            received.append(chunk.choices[0].delta.content)
    assert received == ["Hel"]


def test_a_client_that_leaves_ends_the_generation(
    http: httpx.Client, model_server: ModelServer
) -> None:
    model_server.endless = True
    with http.stream("POST", CHAT, json={**BODY, "stream": True}) as response:
        # An iterator that nobody holds would close the connection by itself.
        chunks = response.iter_bytes()
        next(chunks)
        assert not model_server.left.is_set()
    assert model_server.left.wait(timeout=20)


def test_a_client_that_leaves_while_it_is_sent_something_ends_the_generation(
    model_server: ModelServer,
) -> None:
    model_server.endless = True
    serving = Serving("http://serving.test", token=None, transport=model_server.transport)
    sending = asyncio.Event()

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            sending.set()
            await asyncio.Event().wait()

    async def receive() -> dict[str, str]:
        await sending.wait()
        return {"type": "http.disconnect"}

    async def main() -> None:
        target = Target(name="base-1", base="base-1")
        answer = EventStream(await serving.stream(CHAT_FORM, {**BODY, "stream": True}, target))
        await answer({"type": "http"}, receive, send)
        assert model_server.left.is_set()
        await serving.aclose()

    asyncio.run(main())
