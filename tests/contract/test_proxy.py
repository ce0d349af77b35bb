"""The proxy passes everything on, both ways, and sees what is wrong."""

import httpx
import openai
import pytest
from starlette.types import Receive, Scope, Send

from tests.api.examples import jsonl
from tests.api.running import Api, serving
from tests.contract.documents import Document
from tests.contract.proxy import checked, relay, templates
from tests.fakes.model_server import ModelServer


def test_what_a_client_sends_and_gets_is_the_same(api: Api) -> None:
    with checked(api.url) as url, openai.OpenAI(api_key=api.key, base_url=f"{url}/v1") as client:
        file = client.files.create(file=("a.jsonl", jsonl()), purpose="fine-tune")
        assert client.files.content(file.id).content == jsonl()
        stream = client.chat.completions.create(
            model="base-1", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("a/b:c")


async def broken(scope: Scope, _: Receive, send: Send) -> None:
    """An API that answers with nothing that its document knows."""
    if scope["type"] == "http":
        document = b'{"paths": {"/v1/models": {"get": {"responses": {"200": {}}}}}}'
        body = document if scope["path"] == "/openapi.json" else b"{}"
        headers = [(b"content-type", b"application/json"), (b"x-request-id", b"r")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def test_a_client_that_leaves_takes_its_request_along(api: Api, model_server: ModelServer) -> None:
    model_server.endless = True
    body = {"model": "base-1", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    headers = {"authorization": f"Bearer {api.key}"}
    with (
        checked(api.url) as url,
        httpx.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        next(answer.iter_raw())
        answer.close()
        assert model_server.left.wait(timeout=10)


def test_what_is_wrong_fails_at_the_end() -> None:
    with (
        serving(broken) as url,
        pytest.raises(AssertionError, match="has no 'application/json'"),
        checked(url) as proxy,
    ):
        httpx.get(f"{proxy}/v1/models")


def test_a_path_is_matched_with_the_longest_template() -> None:
    paths = ("/m/{model}", "/m/{model}/permissions", "/m/{model}/permissions/{id}", "/m")
    find = templates(Document({"paths": {path: {} for path in paths}}))
    for path, template in (
        ("/m", paths[3]),
        ("/m/ft:a/b:c", paths[0]),
        ("/m/ft:a/b:c/permissions", paths[1]),
        ("/m/a/permissions/x", paths[2]),
        ("/n", None),
    ):
        assert find({"path": path}) == template


def test_the_relay_keeps_the_path_as_it_was_written(api: Api) -> None:
    with serving(relay(api.url)) as url:
        headers = {"authorization": f"Bearer {api.key}"}
        answer = httpx.get(f"{url}/v1/models/a%2Fb", headers=headers)
        assert "'a/b'" in answer.json()["error"]["message"]
