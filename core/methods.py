"""`method` of a job: what a caller may write, with every range and meaning in one place.

`docs/hyperparameters.md` lists the fields; a test keeps the two in step.
`core.resolve` replaces `"auto"` by values.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from core.errors import InvalidRequest, UnsupportedMethod
from core.response_format import check_response_format
from graders.errors import SpecError, SpecProblem
from graders.registry import ONLY_IN_MULTI
from graders.spec import parse_grader

Auto = Literal["auto"]


@dataclass(frozen=True)
class Range:
    """Accepts "auto" or a number of the range; says the whole range when it refuses."""

    kind: type[int] | type[float]
    low: float
    high: float | None = None
    open_low: bool = False
    zero: bool = False

    def __call__(self, value: Any) -> Any:
        if value == "auto":
            return value
        if not self._is_number(value) or not self._contains(value):
            raise PydanticCustomError(
                "out_of_range",
                "must be 'auto' or {range}, not {value}",
                {"range": self.text(), "value": repr(value)[:80]},
            )
        return self.kind(value)

    def text(self) -> str:
        """Return the range in words, as errors and documentation show it."""
        noun = "an integer" if self.kind is int else "a number"
        low = f"above {self.low:g}" if self.open_low else f"from {self.low:g}"
        if self.high is None:
            text = f"{noun} {low}" + ("" if self.open_low else " up")
        elif self.open_low:
            text = f"{noun} {low} and at most {self.high:g}"
        else:
            text = f"{noun} {low} to {self.high:g}"
        return f"0 or {text}" if self.zero else text

    def _is_number(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return math.isfinite(value) and (self.kind is float or value == int(value))

    def _contains(self, value: float) -> bool:
        if self.zero and value == 0:
            return True
        above = value > self.low if self.open_low else value >= self.low
        return above and (self.high is None or value <= self.high)


MAX_EPOCHS = 50
BATCH_SIZE = Range(int, 1, 256)
EPOCHS = Range(int, 1, MAX_EPOCHS)
POSITIVE = Range(float, 0, open_low=True)
COUNT = Range(int, 1)


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Hyperparameters(_Block):
    """Hyperparameters of reinforcement fine-tuning: OpenAI's, then this service's own."""

    batch_size: Annotated[int | Auto, BeforeValidator(BATCH_SIZE)] = Field(
        "auto", description="Prompts per step; each is answered `group_size` times."
    )
    learning_rate_multiplier: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Scales every automatic learning rate; explicit ones stay as given."
    )
    n_epochs: Annotated[int | Auto, BeforeValidator(EPOCHS)] = Field(
        "auto", description="Passes over the training file."
    )
    reasoning_effort: Literal["default", "low", "medium", "high"] = Field(
        "default", description="Only `default`: the base models here have no reasoning levels."
    )
    compute_multiplier: Annotated[
        float | Auto, BeforeValidator(Range(float, 1e-5, 10, open_low=True))
    ] = Field("auto", description="Scales the automatic `group_size`, the samples per prompt.")
    eval_interval: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Steps between two evaluations on the validation file."
    )
    eval_samples: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Validation rows per evaluation, at most the rows there are."
    )
    algorithm: Literal["auto", "grpo", "dr_grpo"] = Field(
        "auto",
        description="`grpo` divides advantages by the group's spread, `dr_grpo` does not.",
    )
    group_size: Annotated[int | Auto, BeforeValidator(Range(int, 2, 256))] = Field(
        "auto", description="Completions sampled for each prompt and compared with each other."
    )
    max_completion_tokens: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Longest completion, in tokens; less than the model's context."
    )
    temperature: Annotated[float | Auto, BeforeValidator(Range(float, 0, 2, open_low=True))] = (
        Field("auto", description="Sampling temperature of training completions.")
    )
    learning_rate: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Peak learning rate of the reinforcement phase."
    )
    kl_coefficient: Annotated[float | Auto, BeforeValidator(Range(float, 0, 10))] = Field(
        "auto", description="Weight of the penalty for moving away from the starting model."
    )
    lora_rank: Annotated[int | Auto, BeforeValidator(Range(int, 1, 512, zero=True))] = Field(
        "auto", description="Rank of the LoRA adapter; 0 trains the full weights."
    )
    max_steps: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Most steps to run; with `n_epochs` too, whichever ends first."
    )


class WarmStart(_Block):
    """A supervised phase before reinforcement: from a file, or from a field of the rows."""

    file: str | None = Field(None, description="Id of an uploaded file of demonstrations.")
    reference_field: str | None = Field(
        None, min_length=1, description="Field of the training rows that holds a good answer."
    )
    epochs: Annotated[int | Auto, BeforeValidator(EPOCHS)] = Field(
        "auto", description="Passes over the demonstrations."
    )
    learning_rate: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Peak learning rate of the supervised phase."
    )
    batch_size: Annotated[int | Auto, BeforeValidator(BATCH_SIZE)] = Field(
        "auto", description="Demonstrations per step."
    )

    @model_validator(mode="after")
    def _one_source(self) -> "WarmStart":
        if (self.file is None) == (self.reference_field is None):
            raise ValueError("give exactly one of 'file' and 'reference_field'")
        return self


class Reinforcement(_Block):
    """What to reward and how to train; the grader is kept in its normalised form."""

    grader: dict[str, Any] = Field(description="The grader that scores completions.")
    response_format: dict[str, Any] | None = Field(
        None,
        description="Shown as given; it does not constrain sampling, so reward it in the grader.",
    )
    hyperparameters: Hyperparameters = Field(
        default_factory=Hyperparameters, description="How to train; `auto` where left out."
    )
    warm_start: WarmStart | None = Field(
        None, description="A supervised phase before reinforcement."
    )

    dry_run: str | None = Field(
        None,
        min_length=1,
        description="Id of a dry run of this model, file and grader, in place of the job's own.",
    )
    allow_no_spread: bool | None = Field(
        None, description="`true` trains although hardly any group has a spread of scores."
    )

    @field_validator("grader")
    @classmethod
    def _normalise_grader(cls, grader: dict[str, Any]) -> dict[str, Any]:
        spec = parse_grader(grader)
        if spec.type in ONLY_IN_MULTI:
            message = f"A job takes {spec.type} inside a multi grader only; wrap it in one."
            raise SpecError([SpecProblem("type", message)])
        return spec.wire()

    @field_validator("response_format")
    @classmethod
    def _check_format(cls, response_format: dict[str, Any] | None) -> dict[str, Any] | None:
        if response_format is not None:
            check_response_format(response_format)
        return response_format


class Method(_Block):
    """`method` of a request. Blocks beside the chosen type are ignored, as OpenAI does."""

    type: Literal["supervised", "dpo", "reinforcement"]
    supervised: Any = None
    dpo: Any = None
    reinforcement: Reinforcement | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_unused(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("type") not in ("supervised", "dpo"):
            return data
        return {name: value for name, value in data.items() if name != "reinforcement"}


def reinforcement_of(method: Method) -> Reinforcement:
    """Return the reinforcement block.

    Raises UnsupportedMethod for the other types and InvalidRequest when the block is missing.
    """
    if method.type != "reinforcement":
        raise UnsupportedMethod(
            f"Method {method.type!r} is not available here yet; use 'reinforcement', with a"
            " 'warm_start' block for supervised examples.",
            param="method.type",
        )
    if method.reinforcement is None:
        raise InvalidRequest(
            "Missing required parameter: 'method.reinforcement'.",
            param="method.reinforcement",
            code="missing_required_parameter",
        )
    return method.reinforcement


def normalise(method: Method) -> dict[str, Any]:
    """Return the method as the job object shows it: the chosen block, defaults filled in."""
    block = reinforcement_of(method)
    shown = block.model_dump(exclude_none=True)
    return {"type": method.type, method.type: shown}
