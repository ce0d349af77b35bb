"""`method.reinforcement`: what to reward and how to train."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from core.methods.adapter import LoraAlpha, LoraRank, LoraTargets, Quantization
from core.methods.limits import ReinforcementLimits
from core.methods.ranges import (
    BATCH_SIZE,
    COUNT,
    EPOCHS,
    FROM_ZERO,
    POSITIVE,
    SHARE,
    Auto,
    Block,
    Range,
)
from core.response_format import check_response_format
from graders.errors import SpecError, SpecProblem
from graders.registry import ONLY_IN_MULTI
from graders.spec import parse_grader


class Hyperparameters(Block):
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
    algorithm: Literal[
        "auto", "grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "reinforce++", "ppo"
    ] = Field("auto", description="The objective; see [algorithms](algorithms.md).")
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
    lora_rank: LoraRank = "auto"
    lora_alpha: LoraAlpha = "auto"
    lora_targets: LoraTargets = "auto"
    quantization: Quantization = "none"
    max_steps: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Most steps to run; with `n_epochs` too, whichever ends first."
    )
    clip_low: Annotated[float | Auto, BeforeValidator(SHARE)] = Field(
        "auto", description="How far a ratio may fall below 1 before it is clipped."
    )
    clip_high: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="How far a ratio may rise above 1 before it is clipped."
    )
    dual_clip: Annotated[
        float | Auto, BeforeValidator(Range(float, 1, open_low=True, zero=True))
    ] = Field(
        "auto", description="Largest ratio that counts where the advantage is negative; 0 for none."
    )
    cispo_weight_cap: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Largest weight that `cispo` gives a token."
    )
    sapo_temperature_positive: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Sharpness of `sapo`'s gate where the advantage is positive."
    )
    sapo_temperature_negative: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Sharpness of `sapo`'s gate elsewhere."
    )
    kl_estimator: Literal["auto", "k1", "k2", "k3"] = Field(
        "auto", description="How the distance to the starting model is estimated."
    )
    kl_placement: Literal["auto", "loss", "reward"] = Field(
        "auto", description="Whether the penalty stands in the loss or in the reward."
    )
    sampler_correction: Literal[
        "auto",
        "none",
        "token_truncate",
        "sequence_truncate",
        "token_mask",
        "sequence_mask",
        "icepop",
        "geometric_mask",
    ] = Field("auto", description="What is done about the sampler's numerical difference.")
    correction_low: Annotated[float | Auto, BeforeValidator(FROM_ZERO)] = Field(
        "auto", description="Lowest weight that the correction gives or keeps."
    )
    correction_high: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Highest weight that the correction gives or keeps."
    )
    mask_truncated: bool = Field(
        True, description="Whether completions that were cut are left out of the comparison."
    )
    overlong_buffer_tokens: Annotated[int | Auto, BeforeValidator(Range(int, 0))] = Field(
        "auto", description="Tokens before the longest completion in which a penalty grows."
    )
    overlong_penalty: Annotated[float | Auto, BeforeValidator(FROM_ZERO)] = Field(
        "auto", description="What the penalty takes from the score of the longest completion."
    )
    resample_rounds: Annotated[int | Auto, BeforeValidator(Range(int, 0, 16))] = Field(
        "auto", description="Further rounds of sampling in place of groups without spread."
    )
    rollout_epochs: Annotated[int | Auto, BeforeValidator(Range(int, 1, 16))] = Field(
        "auto", description="How often each step's completions are trained on."
    )
    minibatches: Annotated[int | Auto, BeforeValidator(Range(int, 1, 64))] = Field(
        "auto", description="Parts of a step's prompts, each with an update of its own."
    )
    max_staleness: Annotated[int | Auto, BeforeValidator(Range(int, 0, 1))] = Field(
        "auto", description="Steps that the sampler may lag behind while it samples ahead."
    )
    discount: Annotated[float | Auto, BeforeValidator(SHARE)] = Field(
        "auto", description="Discount per token of `ppo` and `reinforce++`."
    )
    gae_lambda: Annotated[float | Auto, BeforeValidator(SHARE)] = Field(
        "auto", description="Weight of longer looks ahead in `ppo`'s advantages."
    )
    critic_learning_rate: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Learning rate of `ppo`'s critic."
    )
    value_clip: Annotated[float | Auto, BeforeValidator(FROM_ZERO)] = Field(
        "auto", description="How far `ppo`'s critic may move a value in one step; 0 for any."
    )


class WarmStart(Block):
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


class Reinforcement(Block):
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
    limits: ReinforcementLimits = Field(
        default_factory=ReinforcementLimits,
        description="What ends the job before its last step, with its checkpoints kept.",
    )
    monitor_grader: dict[str, Any] | None = Field(
        None, description="A grader that only watches validation, to show gains that are not real."
    )
    allow_no_spread: bool | None = Field(
        None, description="`true` trains although hardly any group has a spread of scores."
    )

    @field_validator("grader", "monitor_grader")
    @classmethod
    def _normalise_grader(cls, grader: dict[str, Any] | None) -> dict[str, Any] | None:
        if grader is None:
            return None
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
