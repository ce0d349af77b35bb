"""Graders in the shapes that OpenAI's guides document must validate and run as they are."""

import asyncio
import json
from typing import Any

import pytest
from openai.types import graders as sdk

from bench.fake_judge import FakeJudge
from graders import Engine, Score, parse_grader
from graders.services import ServicesConfig
from tests.graders.judging import services

ANSWER = {
    "output_text": '{"compliant": "yes", "explanation": "Access is logged.", "name": "Ada Byron"}',
    "output_tools": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "find_order", "arguments": '{"order": "K-12"}'},
        }
    ],
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}],
}
ITEM = {
    "compliant": "yes",
    "explanation": "The access is logged.",
    "name": "Ada Byron",
    "expected_tool": {"name": "find_order", "arguments": {"order": "K-12"}},
}

STRING = {
    "type": "string_check",
    "name": "Compliance verdict",
    "operation": "eq",
    "input": "{{sample.output_json.compliant}}",
    "reference": "{{item.compliant}}",
}
SIMILARITY = {
    "type": "text_similarity",
    "name": "Explanation wording",
    "input": "{{ sample.output_json.explanation }}",
    "reference": "{{ item.explanation }}",
    "evaluation_metric": "fuzzy_match",
    "pass_threshold": 0.8,
}
SCORE_MODEL = {
    "type": "score_model",
    "name": "Explanation quality",
    "model": "gpt-4o-2024-08-06",
    "range": [0, 1],
    "input": [
        {"role": "system", "content": "You grade explanations between 0 and 1."},
        {
            "role": "user",
            "content": "Right: {{item.explanation}}\nGiven: {{sample.output_json.explanation}}",
        },
    ],
    "sampling_params": {"max_completions_tokens": 512, "top_p": 1, "temperature": 0.2, "seed": 3},
}
REASONING_JUDGE = {
    "type": "score_model",
    "name": "Strict reviewer",
    "model": "o3-mini",
    "range": [0, 10],
    "pass_threshold": 6,
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": {"type": "input_text", "text": "Rate from 0 to 10."},
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "{{sample.output_text}}"}],
        },
    ],
    "sampling_params": {"reasoning_effort": "low"},
}
PYTHON = {
    "type": "python",
    "name": "Fuzzy wording",
    "image_tag": "2025-05-08",
    "source": """
from rapidfuzz import fuzz, utils

def grade(sample, item) -> float:
    answer = sample["output_json"]["explanation"]
    reference = item["explanation"]
    return fuzz.WRatio(answer, reference, processor=utils.default_process) / 100.0
""",
}
PYTHON_TOOLS = {
    "type": "python",
    "name": "Right tool, right arguments",
    "source": """
import json

def grade(sample, item):
    wanted = item["expected_tool"]
    for call in sample.get("output_tools") or []:
        function = call["function"]
        if function["name"] == wanted["name"]:
            return 1.0 if json.loads(function["arguments"]) == wanted["arguments"] else 0.5
    return 0.0
""",
}
TOOL_NAME = {
    "type": "string_check",
    "name": "Tool",
    "operation": "eq",
    "input": "{{sample.output_tools[0].function.name}}",
    "reference": "{{item.expected_tool.name}}",
}
LABEL = {
    "type": "label_model",
    "name": "Tone",
    "model": "gpt-4o-2024-08-06",
    "input": [
        {"role": "developer", "content": "Classify the tone as calm, neutral or angry."},
        {"role": "user", "content": "Text: {{sample.output_text}}"},
    ],
    "labels": ["calm", "neutral", "angry"],
    "passing_labels": ["calm", "neutral"],
}
MULTI = {
    "type": "multi",
    "name": "Verdict and reasons",
    "graders": {"explanation": SCORE_MODEL, "compliant": STRING},
    "calculate_output": "0.5 * compliant + 0.5 * explanation",
}
MULTI_OF_CHECKS = {
    "type": "multi",
    "name": "Fields",
    "graders": {
        "name": {
            "type": "string_check",
            "name": "name",
            "operation": "eq",
            "input": "{{sample.output_json.name}}",
            "reference": "{{item.name}}",
        },
        "reason": {key: value for key, value in SIMILARITY.items() if key != "pass_threshold"},
    },
    "calculate_output": "(name + reason) / 2",
}

#: Grader, what the judge replies, and the lowest and highest score that is right.
GUIDE: list[tuple[dict[str, Any], Any, float, float]] = [
    (STRING, None, 1, 1),
    (SIMILARITY, None, 0.8, 0.999),
    (SCORE_MODEL, {"steps": [], "result": 0.75}, 0.75, 0.75),
    (REASONING_JUDGE, {"steps": [], "result": 8}, 8, 8),
    (PYTHON, None, 0.8, 0.999),
    (PYTHON_TOOLS, None, 1, 1),
    (TOOL_NAME, None, 1, 1),
    (LABEL, {"label": "neutral"}, 1, 1),
    (LABEL, {"label": "angry"}, 0, 0),
    (MULTI, {"steps": [], "result": 0.5}, 0.75, 0.75),
    (MULTI_OF_CHECKS, None, 0.9, 0.999),
]


@pytest.mark.parametrize(("spec", "reply", "low", "high"), GUIDE)
def test_documented_grader_runs(spec: dict[str, Any], reply: Any, low: float, high: float) -> None:
    async def run(config: ServicesConfig) -> Any:
        engine = Engine(parse_grader(spec), config)
        try:
            return (await engine.grade(ANSWER, ITEM)).outcome
        finally:
            await engine.close()

    with FakeJudge([json.dumps(reply)]) as judge:
        outcome = asyncio.run(run(services(judge)))
    assert isinstance(outcome, Score), outcome
    assert low <= outcome.value <= high
    assert bool(judge.requests) == (reply is not None)


def _nulls(spec: Any) -> Any:
    """The grader as typed clients write it: with every field, `null` where none was given."""
    if isinstance(spec, list):
        return [_nulls(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    optional: dict[Any, list[str]] = {
        "python": ["image_tag"],
        "score_model": ["range", "sampling_params"],
        "input_text": ["prompt_cache_breakpoint"],
        "input_image": ["detail"],
    }
    nulls = dict.fromkeys(optional.get(spec.get("type"), []))
    if "role" in spec:
        nulls |= {"type": None}
    if "operation" in spec or "evaluation_metric" in spec:
        nulls |= {"pass_threshold": None}
    if "temperature" in spec or "reasoning_effort" in spec:
        nulls |= dict.fromkeys(["seed", "temperature", "top_p", "max_completions_tokens"])
    return nulls | {key: _nulls(value) for key, value in spec.items()}


@pytest.mark.parametrize("spec", [spec for spec, *_ in GUIDE], ids=lambda spec: spec["name"])
def test_null_is_as_good_as_not_given(spec: dict[str, Any]) -> None:
    assert parse_grader(_nulls(spec)) == parse_grader(spec)
    assert parse_grader(_nulls(spec)).wire() == parse_grader(spec).wire()


@pytest.mark.parametrize(
    "typed",
    [
        sdk.StringCheckGrader(
            type="string_check", name="s", operation="eq", input="a", reference="b"
        ),
        sdk.TextSimilarityGrader(
            type="text_similarity", name="t", evaluation_metric="bleu", input="a", reference="b"
        ),
        sdk.PythonGrader(type="python", name="p", source=PYTHON["source"]),
        *(
            sdk.ScoreModelGrader.model_validate(
                SCORE_MODEL | {"name": "j", "input": [{"role": "user", "content": content}]} | more
            )
            for content in (
                "x",
                {"type": "input_text", "text": "x"},
                {"type": "output_text", "text": "x"},
                {"type": "input_image", "image_url": "https://example.com/"},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                ["x", {"type": "input_text", "text": "x"}],
            )
            for more in ({}, {"range": None, "sampling_params": {}}, {"sampling_params": None})
        ),
        sdk.LabelModelGrader.model_validate(LABEL | {"name": "l"}),
    ],
)
def test_graders_of_typed_clients_are_taken(typed: Any) -> None:
    alone = sdk.MultiGrader(type="multi", name="m", graders=typed, calculate_output=typed.name)
    for grader in (typed, alone):
        whole = parse_grader(grader.model_dump())
        assert whole == parse_grader(grader.model_dump(exclude_none=True))
        assert whole == parse_grader(grader.model_dump(exclude_unset=True))


@pytest.mark.parametrize("spec", [spec for spec, *_ in GUIDE], ids=lambda spec: spec["name"])
def test_documented_grader_is_echoed_as_it_came(spec: dict[str, Any]) -> None:
    echo = parse_grader(spec).wire()
    # The tag of the image is the only thing that the reference service fills in.
    echo.pop("image_tag", None)
    assert echo == {key: value for key, value in spec.items() if key != "image_tag"}
