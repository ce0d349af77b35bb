"""What grading one sample can end in: a score, an abstention or a failure.

Only scores enter a group's baseline. A failure is counted by kind and is never a zero in
disguise; a configured `invalid_grade` turns a failure that the sample is to blame for into a
score that carries a note.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from graders.errors import WireError

Blame: TypeAlias = Literal["sample", "grader", "data", "infrastructure"]


@dataclass(frozen=True)
class FailureKind:
    """Who is to blame for a kind of failure, and the flag of OpenAI's API that it sets."""

    blame: Blame
    flag: str
    meaning: str


#: Every failure kind. The names of OpenAI's flags keep their meaning; the rest are ours.
KINDS: dict[str, FailureKind] = {
    "sample_parse_error": FailureKind(
        "sample", "sample_parse_error", "the completion is not the JSON that a template reads"
    ),
    "sample_variable_error": FailureKind(
        "sample", "invalid_variable_error", "a `sample.` variable is not in this completion"
    ),
    "truncated_observation_error": FailureKind(
        "sample", "truncated_observation_error", "the completion was cut before it could be graded"
    ),
    "invalid_variable_error": FailureKind(
        "data", "invalid_variable_error", "an `item.` variable is not in this row"
    ),
    "invalid_reference_error": FailureKind(
        "data", "invalid_variable_error", "the reference of this row is not what the grader needs"
    ),
    "formula_parse_error": FailureKind(
        "grader", "formula_parse_error", "`calculate_output` cannot be read"
    ),
    "formula_runtime": FailureKind(
        "grader", "formula_parse_error", "`calculate_output` has no finite value, as in 1 / 0"
    ),
    "non_finite_reward": FailureKind("grader", "other_error", "the score is NaN or infinite"),
    "other_error": FailureKind("grader", "other_error", "the grader met one of its limits"),
    "internal_error": FailureKind(
        "infrastructure", "other_error", "the grader broke, a bug of ours; its log says where"
    ),
    "python_grader_runtime_error": FailureKind(
        "grader", "python_grader_runtime_error", "the code of a python grader raised"
    ),
    "python_grader_timeout": FailureKind(
        "grader",
        "unresponsive_reward_error",
        "the code of a python grader took longer than it may",
    ),
    "python_grader_server_error": FailureKind(
        "infrastructure", "python_grader_server_error", "the sandbox could not run the code"
    ),
    "model_grader_parse_error": FailureKind(
        "grader", "model_grader_parse_error", "the judge's reply has no usable score"
    ),
    "model_grader_refusal_error": FailureKind(
        "grader", "model_grader_refusal_error", "the judge refused to answer"
    ),
    "model_grader_server_error": FailureKind(
        "infrastructure", "model_grader_server_error", "the judge could not be reached"
    ),
    "endpoint_server_error": FailureKind(
        "infrastructure", "other_error", "the endpoint could not be reached"
    ),
    "endpoint_reply_error": FailureKind(
        "grader", "other_error", "the endpoint's reply has no usable score"
    ),
    "unresponsive_reward_error": FailureKind(
        "infrastructure", "unresponsive_reward_error", "the grader gave no answer in time"
    ),
}


@dataclass(frozen=True)
class Note:
    """A failure that `invalid_grade` turned into a score: counted, never hidden."""

    grader: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Score:
    """A finite score. `sub_scores` holds the children of a `multi` by their key."""

    value: float
    sub_scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"A score must be finite, not {self.value}.")


@dataclass(frozen=True)
class Abstain:
    """The grader has no opinion on this sample; the sample leaves the group."""

    reason: str


@dataclass(frozen=True)
class Failure:
    """Grading failed. `grader` names the (child) grader; `sub_scores` holds what did score."""

    kind: str
    detail: str
    grader: str | None = None
    sub_scores: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Unknown failure kind {self.kind!r}; known: {', '.join(KINDS)}.")

    @property
    def blame(self) -> Blame:
        """Who has to act: the sample, the grader's author, the data or the operator."""
        return KINDS[self.kind].blame


Outcome: TypeAlias = Score | Abstain | Failure


def to_wire(outcome: Outcome) -> dict[str, Any]:
    """Turn an outcome into a plain JSON object."""
    match outcome:
        case Score(value, sub_scores, notes):
            listed = [{"grader": n.grader, "kind": n.kind, "detail": n.detail} for n in notes]
            return {
                "outcome": "score",
                "value": value,
                "sub_scores": dict(sub_scores),
                "notes": listed,
            }
        case Abstain(reason):
            return {"outcome": "abstain", "reason": reason}
        case Failure(kind, detail, grader, sub_scores):
            return {
                "outcome": "failure",
                "kind": kind,
                "detail": detail,
                "grader": grader,
                "sub_scores": dict(sub_scores),
            }


def from_wire(data: Mapping[str, Any]) -> Outcome:
    """Read back what `to_wire` wrote; raises `WireError` on anything else."""
    try:
        match data["outcome"]:
            case "score":
                notes = tuple(Note(**note) for note in data["notes"])
                return Score(float(data["value"]), dict(data["sub_scores"]), notes)
            case "abstain":
                return Abstain(cast(str, data["reason"]))
            case "failure":
                sub_scores = dict(data["sub_scores"])
                return Failure(data["kind"], data["detail"], data["grader"], sub_scores)
            case other:
                raise WireError(f"Unknown outcome {other!r}; known: score, abstain, failure.")
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"Not an outcome: {error!r}.") from error
