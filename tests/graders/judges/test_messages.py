"""What a judge is sent: roles, parts, templates."""

from typing import Any

import pytest

from graders import Failure, SpecError, parse_grader
from graders.judges.messages import MAX_MESSAGES, MAX_PARTS
from tests.graders.judging import judged, outcome, score_model

GOOD = ['{"result": 1}']
ALL = ("text", "image", "audio")


def sent(content: Any, item: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The messages that reach the judge for one user message."""
    spec = score_model(input=[{"role": "user", "content": content}])
    _, server = judged(spec, GOOD, item=item, reads=ALL)
    messages: list[dict[str, Any]] = server.requests[0].body["messages"]
    return messages


def test_request_for_the_form_follows_the_last_user_message() -> None:
    [message] = sent("rate")
    assert message["content"].startswith('rate\n\nAnswer with one JSON object and nothing else: {"')
    assert message["content"].endswith('"result": <a number from 0 to 1>}')


def test_request_for_the_form_is_a_message_after_an_assistants() -> None:
    few_shots = [
        {"role": "system", "content": "Rate."},
        {"role": "user", "content": "{{sample.output_text}}"},
        {"role": "assistant", "content": "Let me think."},
    ]
    _, server = judged(score_model(input=few_shots), GOOD)
    roles = [message["role"] for message in server.requests[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_parts() -> None:
    [message] = sent(
        [
            {"type": "input_text", "text": "{{item.n}}: {{sample.output_text}}"},
            {"type": "output_text", "text": "x"},
            {"type": "input_image", "image_url": "https://example.com/{{item.n}}", "detail": "low"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            {"type": "input_audio", "input_audio": {"data": "{{item.sound}}", "format": "mp3"}},
        ],
        {"n": 7, "sound": "AAAA"},
    )
    assert message["content"][:-1] == [
        {"type": "text", "text": "7: an answer"},
        {"type": "text", "text": "x"},
        {"type": "image_url", "image_url": {"url": "https://example.com/7", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
    ]


def test_a_single_text_part_is_sent_as_text() -> None:
    [message] = sent({"type": "input_text", "text": "rate"})
    assert message["content"].startswith("rate\n\n")


def test_texts_stand_between_parts_as_they_are() -> None:
    content = ["{{item.n}}.", {"type": "input_image", "image_url": "https://example.com/"}, "rate"]
    [message] = sent(content, {"n": 7})
    assert message["content"][:-1] == [
        {"type": "text", "text": "7."},
        {"type": "image_url", "image_url": {"url": "https://example.com/"}},
        {"type": "text", "text": "rate"},
    ]
    [message] = sent(["{{item.n}}"], {"n": 7})
    assert message["content"].startswith("7\n\n")
    spec = parse_grader(score_model(input=[{"role": "user", "content": content}]))
    assert spec.wire()["input"][0]["content"] == content
    assert "item.n" in {str(path) for path in spec.paths()}


@pytest.mark.parametrize("content", [["{{item.n"], [5], [None], [["x"]]])
def test_what_is_no_part(content: Any) -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader(score_model(input=[{"role": "user", "content": content}]))
    assert caught.value.param == "input.0.content.0"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://169.254.169.254/", "data:text/x", ""]
)
def test_judge_is_sent_to_no_other_place_for_an_image(url: str) -> None:
    spec = score_model(
        input=[{"role": "user", "content": {"type": "input_image", "image_url": "{{item.url}}"}}]
    )
    failed = outcome(spec, GOOD, item={"url": url}, reads=ALL)
    assert isinstance(failed, Failure)
    assert failed.kind == "invalid_variable_error"


@pytest.mark.parametrize("url", ["http://example.com/a.png", "file:///etc/passwd", ""])
def test_fixed_image_that_no_judge_may_fetch_is_refused(url: str) -> None:
    part = {"type": "input_image", "image_url": url}
    with pytest.raises(SpecError) as caught:
        parse_grader(score_model(input=[{"role": "user", "content": [part]}]))
    [problem] = caught.value.problems
    assert problem.param == "input.0.content.0.image_url"
    assert problem.message == "An image must be an https:// or data:image/ URL."


@pytest.mark.parametrize(
    ("part", "missing"),
    [
        ({"type": "input_image", "image_url": "https://example.com/"}, "image"),
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}, "audio"),
    ],
)
def test_judge_that_cannot_take_a_part_is_refused(part: dict[str, Any], missing: str) -> None:
    spec = score_model(input=[{"role": "user", "content": part}])
    with pytest.raises(SpecError, match=f"reads text only, and this grader sends {missing}"):
        judged(spec, GOOD)


def test_prompt_is_bounded_as_a_whole() -> None:
    long = {"role": "user", "content": "{{item.x}}" * 3}
    graded, server = judged(score_model(input=[long, long]), GOOD, item={"x": "y" * 1_000_000})
    assert graded.outcome.value == 1.0
    graded, server = judged(score_model(input=[long] * 6), GOOD, item={"x": "y" * 1_000_000})
    assert isinstance(graded.outcome, Failure)
    assert graded.outcome.kind == "other_error"
    assert server.requests == []


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "x"}] * (MAX_MESSAGES + 1),
        [{"role": "user", "content": [{"type": "input_text", "text": "x"}] * (MAX_PARTS + 1)}],
    ],
)
def test_too_much(messages: Any) -> None:
    with pytest.raises(SpecError, match="1 to 100"):
        judged(score_model(input=messages), GOOD)
