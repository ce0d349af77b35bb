"""Outcomes and their JSON form."""

import json
import math
from typing import Any

import pytest

from graders import KINDS, Abstain, Failure, Note, Outcome, Score, WireError, from_wire, to_wire


@pytest.mark.parametrize(
    "outcome",
    [
        Score(0.5),
        Score(-2.0, {"a": 1.0}, (Note("a", "sample_parse_error", "why"),)),
        Abstain("unsure"),
        Failure("other_error", "why"),
        Failure("formula_runtime", "why", "reward", {"a": 1.0}),
    ],
)
def test_wire_and_back(outcome: Outcome) -> None:
    assert from_wire(json.loads(json.dumps(to_wire(outcome), allow_nan=False))) == outcome


def test_wire_form() -> None:
    assert to_wire(Score(1.0, {"a": 1.0}, (Note("a", "other_error", "d"),))) == {
        "outcome": "score",
        "value": 1.0,
        "sub_scores": {"a": 1.0},
        "notes": [{"grader": "a", "kind": "other_error", "detail": "d"}],
    }
    assert to_wire(Abstain("r")) == {"outcome": "abstain", "reason": "r"}
    assert to_wire(Failure("other_error", "d", "g")) == {
        "outcome": "failure",
        "kind": "other_error",
        "detail": "d",
        "grader": "g",
        "sub_scores": {},
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Score(value)


def test_failure_kinds_are_known_and_have_a_flag_of_the_api() -> None:
    with pytest.raises(ValueError, match="known: sample_parse_error"):
        Failure("oops", "why")
    flags = {kind.flag for kind in KINDS.values()}
    assert flags == {
        "formula_parse_error",
        "sample_parse_error",
        "truncated_observation_error",
        "unresponsive_reward_error",
        "invalid_variable_error",
        "other_error",
        "python_grader_server_error",
        "python_grader_runtime_error",
        "model_grader_server_error",
        "model_grader_refusal_error",
        "model_grader_parse_error",
    }


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"outcome": "win"},
        {"outcome": "score", "value": "x", "sub_scores": {}, "notes": []},
        {"outcome": "score", "value": 1.0},
        {"outcome": "score", "value": math.nan, "sub_scores": {}, "notes": []},
        {"outcome": "failure", "kind": "oops", "detail": "", "grader": None, "sub_scores": {}},
    ],
)
def test_other_data_is_refused(data: Any) -> None:
    with pytest.raises(WireError):
        from_wire(data)
