"""`label_model`: a judge picks a label."""

from typing import Any

import pytest

from graders import Failure, Score, SpecError, parse_grader, warnings
from tests.graders.judging import judged, outcome


def label_model(**changes: Any) -> dict[str, Any]:
    """A judge of tone."""
    return {
        "type": "label_model",
        "name": "tone",
        "model": "judge",
        "labels": ["friendly", "neutral", "rude"],
        "passing_labels": ["friendly", "neutral"],
        "input": [{"role": "user", "content": "tone of {{sample.output_text}}"}],
    } | changes


@pytest.mark.parametrize(("label", "value"), [("friendly", 1.0), ("neutral", 1.0), ("rude", 0.0)])
def test_label_passes_or_not(label: str, value: float) -> None:
    graded, server = judged(label_model(), [f'{{"label": "{label}"}}'])
    assert graded.outcome == Score(value)
    schema = server.requests[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == ["friendly", "neutral", "rude"]


@pytest.mark.parametrize(
    "reply",
    ['{"label": "polite"}', '{"label": "Friendly"}', '{"label": ["rude"]}', "friendly", "{}", ""],
)
def test_anything_else_is_asked_again_and_then_fails(reply: str) -> None:
    graded, server = judged(label_model(), [reply])
    assert isinstance(graded.outcome, Failure)
    assert graded.outcome.kind == "model_grader_parse_error"
    assert len(server.requests) == 2
    assert outcome(label_model(), [reply, '{"label": "rude"}']) == Score(0.0)


def test_as_a_child() -> None:
    spec = {
        "type": "multi",
        "name": "m",
        "graders": {"tone": label_model()},
        "calculate_output": "2 * tone",
    }
    assert outcome(spec, ['{"label": "neutral"}']) == Score(2.0, {"tone": 1.0})


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"passing_labels": ["polite"]}, "passing_labels"),
        ({"passing_labels": []}, "passing_labels"),
        ({"labels": ["a", "a"], "passing_labels": ["a"]}, "labels"),
        ({"labels": []}, "labels"),
        ({"range": [0, 1]}, "range"),
    ],
)
def test_spec_is_refused(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader(label_model(**changes))
    assert caught.value.param == param


def test_grader_that_always_passes_is_warned_about() -> None:
    [warning] = warnings(parse_grader(label_model(passing_labels=["rude", "friendly", "neutral"])))
    assert "always 1" in warning
    assert warnings(parse_grader(label_model())) == []
