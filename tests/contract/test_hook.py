"""The hook that checks every answer of the API's tests finds what is wrong with one."""

import json
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from tests.api.running import Api
from tests.contract import hook
from tests.contract.differences import DIFFERENCES, Patch
from tests.contract.documents import Document
from tests.contract.hook import Answer, Checked, own_document, settle
from tests.contract.reference import apply

MODELS = "/v1/models"
GOOD = {"object": "list", "data": []}


def answer(body: Any, *, status: int = 200, kind: str = "application/json") -> Answer:
    """An answer of GET /v1/models."""
    return Answer(
        method="GET",
        path=MODELS,
        template=MODELS,
        status=status,
        headers=Headers({"content-type": kind, "x-request-id": "req_1"}),
        body=json.dumps(body).encode(),
    )


@pytest.fixture
def checked(api: Api) -> Checked:
    """The API under the hook, without OpenAI's document."""
    made = Checked(api.app, own_document(api.app))
    made.reference = Document({"paths": {}})
    return made


def test_a_right_answer_is_let_through(checked: Checked) -> None:
    assert checked.problems(answer(GOOD)) == []
    error = {"error": {"message": "m", "type": "server_error", "param": None, "code": None}}
    assert checked.problems(answer(error, status=400)) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (answer({"object": "list"}), '"data" is a required property'),
        (answer({**GOOD, "data": [{"id": 1}]}), "$.data[0].id: 1 is not of type"),
        (answer(GOOD, status=206), "the document has no 206"),
        (answer(GOOD, kind="text/plain"), "no 'text/plain'"),
        (answer({"detail": "x"}, status=404), '"error" is a required property'),
        (answer({"error": {"message": "m"}}, status=400), '"type" is a required property'),
        (answer({}, status=500, kind="text/html"), "an error of type 'text/html'"),
    ],
)
def test_a_wrong_answer_is_named(checked: Checked, wrong: Answer, said: str) -> None:
    found = checked.problems(wrong)
    assert any(said in problem for problem in found), found
    assert all(problem.startswith("GET /v1/models → ") for problem in found)


def test_an_answer_without_a_request_id_is_named(checked: Checked) -> None:
    bare = answer(GOOD)
    bare.headers = Headers({"content-type": "application/json"})
    assert "x-request-id" in checked.problems(bare)[0]


def test_each_event_of_a_stream_is_checked(checked: Checked) -> None:
    stream = Answer("POST", "/v1/chat/completions", "/v1/chat/completions", 200)
    stream.headers = Headers({"content-type": "text/event-stream", "x-request-id": "req_1"})
    stream.body = b'data: {"choices": 1}\n\ndata: {"error": {}}\n\ndata: [DONE]\n\n'
    assert any("choices" in problem for problem in checked.problems(stream))


def test_openais_document_is_asked_too(checked: Checked) -> None:
    schema = {"type": "object", "required": ["has_more"]}
    response = {"200": {"content": {"application/json": {"schema": schema}}}}
    checked.reference = Document({"paths": {"/models": {"get": {"responses": response}}}})
    assert checked.problems(answer(GOOD)) == [
        'GET /v1/models → 200: $: "has_more" is a required property'
    ]


def test_a_violation_fails_the_test_that_saw_it(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook.Checked, "problems", lambda *_: ["GET / → 200: broken"])
    http.get(MODELS)
    with pytest.raises(AssertionError, match="broken"):
        settle()
    settle()


def test_patches_change_a_document_and_must_lead_somewhere() -> None:
    document = Document({"a": {"enum": ["x"], "b/c": {"d": 1}}})
    apply(document, Patch("/a/enum", ["y"]))
    apply(document, Patch("/a/b~1c", {"e": 2}))
    assert document.content == {"a": {"enum": ["x", "y"], "b/c": {"d": 1, "e": 2}}}
    with pytest.raises(KeyError):
        apply(document, Patch("/a/nope", {}))


def test_every_difference_says_why() -> None:
    for difference in DIFFERENCES:
        assert all((difference.here, difference.openai, difference.reason))
