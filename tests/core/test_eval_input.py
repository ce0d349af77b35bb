"""From an item to the messages of a chat request, and from sampling params to its fields."""

from typing import Any

import pytest

from core.errors import InvalidRequest
from core.eval_input import chat_fields, read_input
from graders.errors import GradeError


def referenced(item: dict[str, Any], reference: str = "item.m") -> list[dict[str, Any]]:
    """The messages that an item's field holds."""
    source = {"type": "item_reference", "item_reference": reference}
    return read_input(source, param="p")(item)


def test_a_template_is_filled_with_the_item() -> None:
    template = [
        {"type": "message", "role": "developer", "content": "Be {{item.mood}}."},
        {"role": "user", "content": [{"type": "input_text", "text": "{{ item.q[0] }}"}, "?"]},
    ]
    render = read_input({"type": "template", "template": template}, param="p")
    assert render({"mood": "kind", "q": ["why"]}) == [
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "why"}, {"type": "text", "text": "?"}],
        },
    ]
    with pytest.raises(GradeError, match=r"item\.mood is missing; did you mean item\.mod"):
        render({"mod": "x", "q": ["y"]})


def test_braces_in_an_item_are_no_template() -> None:
    template = [{"role": "user", "content": "{{item.q}}"}]
    render = read_input({"type": "template", "template": template}, param="p")
    assert render({"q": "{{item.secret}}"}) == [{"role": "user", "content": "{{item.secret}}"}]


def test_messages_of_an_item_lose_what_no_request_has() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"role": "assistant", "content": None, "weight": 0, "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "c", "type": "message"},
    ]
    assert referenced({"m": messages}) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "c"},
    ]
    assert referenced({"m": "Hi"}, "{{item.m}}") == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "video_url", "video_url": {"url": "http://127.0.0.1/"}},
        {"type": "file", "file": {"file_id": "file-x"}},
    ],
)
def test_nothing_that_would_be_fetched_reaches_the_model_server(part: dict[str, Any]) -> None:
    with pytest.raises(GradeError):
        referenced({"m": [{"role": "user", "content": [part]}]})


@pytest.mark.parametrize("value", [None, [], 3, [{"role": "usr", "content": ""}], ["Hi"]])
def test_a_field_that_holds_no_messages_is_said_to(value: Any) -> None:
    with pytest.raises(GradeError, match=r"item\.m"):
        referenced({"m": value})


def test_defaults_are_openais_and_given_values_stand() -> None:
    fields = chat_fields({"type": "completions"}, param="p")
    assert fields == {"temperature": 1.0, "top_p": 1.0, "seed": 42}
    given = {"temperature": 0, "seed": 1, "max_completion_tokens": 5, "tools": []}
    fields = chat_fields({"type": "completions", "sampling_params": given}, param="p")
    assert fields == {"temperature": 0, "top_p": 1.0, "seed": 1, "max_completion_tokens": 5}


def test_a_tool_that_runs_elsewhere_is_refused() -> None:
    params = {"tools": [{"type": "file_search"}]}
    with pytest.raises(InvalidRequest, match="file_search") as refusal:
        chat_fields({"type": "responses", "sampling_params": params}, param="data_source")
    assert refusal.value.param == "data_source.sampling_params.tools[0]"


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ({"format": "json"}, "p.sampling_params.text.format.type"),
        ({"format": {"type": "xml"}}, "p.sampling_params.text.format.type"),
        ({"verbosity": "low"}, "p.sampling_params.text.verbosity"),
    ],
)
def test_a_text_that_no_chat_request_can_ask_for_is_refused(
    text: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        chat_fields({"type": "responses", "sampling_params": {"text": text}}, param="p")
    assert refusal.value.param == param
