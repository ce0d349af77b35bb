"""Trying a grader out: the bodies of OpenAI's two alpha endpoints, and their answers."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from api.schemas.common import RequestBody
from graders.spec import parse_grader


def _normalised(raw: dict[str, Any]) -> dict[str, Any]:
    return parse_grader(raw).wire()


#: Grader JSON of a body, checked and brought to its normalised form.
GraderJson = Annotated[dict[str, Any], AfterValidator(_normalised)]


class ValidateGrader(RequestBody):
    """The body of `POST /v1/fine_tuning/alpha/graders/validate`."""

    grader: GraderJson


class ValidatedGrader(BaseModel):
    """The grader as the service understands it, and what in it is allowed but likely a mistake."""

    grader: dict[str, Any]
    warnings: list[str]


class RunGrader(RequestBody):
    """The body of `POST /v1/fine_tuning/alpha/graders/run`; `item` is a row of a dataset."""

    grader: GraderJson
    model_sample: str
    item: dict[str, Any] | None = None


class GraderErrors(BaseModel):
    """OpenAI's 14 flags: what went wrong, also where `invalid_grade` made a score of it."""

    formula_parse_error: bool = False
    sample_parse_error: bool = False
    truncated_observation_error: bool = False
    unresponsive_reward_error: bool = False
    invalid_variable_error: bool = False
    other_error: bool = False
    python_grader_server_error: bool = False
    python_grader_server_error_type: str | None = None
    python_grader_runtime_error: bool = False
    python_grader_runtime_error_details: str | None = None
    model_grader_server_error: bool = False
    model_grader_refusal_error: bool = False
    model_grader_parse_error: bool = False
    model_grader_server_error_details: str | None = None


class GraderRunMetadata(BaseModel):
    """How the run went; `execution_time` in seconds, `token_usage` of all judges together."""

    name: str
    type: str
    errors: GraderErrors
    execution_time: float
    scores: dict[str, float]
    token_usage: int | None
    sampled_model_name: str | None


class ModelUsage(BaseModel):
    """Tokens of one judge model."""

    prompt_tokens: int = 0
    total_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class GraderRun(BaseModel):
    """What one grader made of one sample.

    `reward` is 0 where there is no score; `outcome`, ours, tells that apart from a score of 0, and
    `traces`, ours, lists what each grader did.
    """

    reward: float
    metadata: GraderRunMetadata
    sub_rewards: dict[str, float]
    model_grader_token_usage_per_model: dict[str, ModelUsage]
    outcome: dict[str, Any]
    traces: list[dict[str, Any]]
