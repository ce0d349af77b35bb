"""A step's metrics have every key of OpenAI's events, for each type of grader."""

import pytest

from graders.outcome import Failure, Score
from graders.trace import Trace, Usage
from tests.trainer.rollouts import rollout
from trainer.metrics import step_metrics

GRADER = {
    "type": "multi",
    "name": "all",
    "graders": {
        "judge": {"type": "score_model", "name": "judge"},
        "code": {"type": "python", "name": "code"},
        "same": {"type": "string_check", "name": "same"},
    },
    "calculate_output": "judge + code + same",
}
UPDATE = {"loss": 0.5, "timing": {"step": {"sampling": 1.0, "training": 2.0}}}


def traces(tokens: int) -> tuple[Trace, ...]:
    return (
        Trace("all", "multi", latency_s=0.4),
        Trace("judge", "score_model", 0.3, model="m", usage=Usage(tokens, 2, cached_tokens=1)),
        Trace("code", "python", 0.1),
        Trace("same", "string_check", 0.0),
    )


def test_every_key_is_there() -> None:
    train = [
        rollout(Score(1.0, {"judge": 1.0}), traces=traces(10)),
        rollout(Failure("python_grader_runtime_error", "d", grader="code"), traces=traces(20)),
        rollout(Failure("model_grader_server_error", "d", grader="judge"), traces=traces(30)),
    ]
    valid = [rollout(Score(0.5, {"judge": 0.5}), traces=traces(100))]
    data = step_metrics(GRADER, train, valid, step=3, total_steps=9, update=UPDATE, group_size=3)
    assert data.keys() >= {
        *("step", "total_steps", "train_mean_reward", "full_valid_mean_reward"),
        *("full_valid_mean_parse_error", "reasoning_tokens_mean", "valid_reasoning_tokens_mean"),
        *("completion_tokens_mean", "mean_unresponsive_rewards"),
        *("scores", "errors", "usage", "timing", "model_graders_token_usage"),
    }
    errors = {part["name"]: part for part in data["errors"]["graders"]}
    assert errors["code"]["train_python_grader_runtime_error_count"] == 1
    assert errors["code"]["train_python_grader_runtime_error_mean"] == pytest.approx(1 / 3)
    assert errors["code"]["valid_python_grader_server_error_count"] == 0
    assert errors["judge"]["train_model_grader_server_error_count"] == 1
    assert errors["code"]["train_other_error_count"] == 0
    assert not any("python" in key or "model" in key for key in errors["same"])
    (usage,) = data["usage"]["graders"]
    assert usage == {
        "name": "judge",
        "type": "score_model",
        "model": "m",
        "train_prompt_tokens_count": 60,
        "train_prompt_tokens_mean": 20.0,
        "train_completion_tokens_count": 6,
        "train_completion_tokens_mean": 2.0,
        "valid_prompt_tokens_count": 100,
        "valid_prompt_tokens_mean": 100.0,
        "valid_completion_tokens_count": 2,
        "valid_completion_tokens_mean": 2.0,
    }
    assert data["usage"]["samples"]["train_reasoning_tokens_mean"] == 0.0
    assert data["model_graders_token_usage"] == {
        "m": {
            "train_prompt_tokens": 60,
            "train_completion_tokens": 6,
            "train_cached_tokens": 3,
            "eval_prompt_tokens": 100,
            "eval_completion_tokens": 2,
            "eval_cached_tokens": 1,
        }
    }
    assert data["timing"]["step"] == {"sampling": 1.0, "training": 2.0, "eval": 0.0}
    times = {part["name"]: part for part in data["timing"]["graders"]}
    assert times["judge"]["train_execution_latency_mean"] == pytest.approx(0.3)
    assert times["all"]["type"] == "multi"


def test_without_validation_and_judges_the_keys_stay() -> None:
    grader = GRADER["graders"]["same"]  # type: ignore[index]
    made = [rollout(Score(1.0), traces=(Trace("same", "string_check", 0.1, cached=True),))]
    data = step_metrics(grader, made, None, step=1, total_steps=2, update={}, group_size=1)
    assert data["usage"]["graders"] == [] and data["model_graders_token_usage"] == {}
    assert data["timing"]["graders"] == [
        {
            "name": "same",
            "type": "string_check",
            "train_execution_latency_mean": None,
            "valid_execution_latency_mean": None,
        }
    ]
    assert data["errors"]["graders"][0]["valid_other_error_mean"] == 0.0
