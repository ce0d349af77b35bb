"""What one training process is told: the contents of ``spec.json``, every value resolved."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSpec(_Strict):
    """The base model on local disk, in Hugging Face layout."""

    id: str
    path: Path
    context_tokens: int = Field(ge=8)
    #: A file whose chat template stands in for the tokenizer's own.
    chat_template: Path | None


class DataSpec(_Strict):
    """JSONL files, relative to the job directory."""

    train: str
    validation: str | None
    warm_start: str | None


class AdapterSpec(_Strict):
    """What is trained: a LoRA adapter on some layers, or with ``rank`` 0 all weights."""

    rank: int = Field(ge=0)
    alpha: float = Field(gt=0)
    #: Names of linear layers, or all of them except the head.
    targets: list[str] | Literal["all-linear"]
    #: The base's type below the adapter.
    quantization: Literal["none", "nf4"]


class LimitsSpec(_Strict):
    """What ends a job early. ``None`` and zeros limit nothing."""

    max_train_seconds: int | None
    #: What earlier attempts of the job took, also those that left no checkpoint.
    seconds_before: float = Field(ge=0)
    max_tokens: int | None
    plateau_window: int = Field(ge=0)
    min_entropy: float = Field(ge=0)
    max_kl: float = Field(ge=0)
    max_mismatch: float = Field(gt=0)


class WarmStartSpec(_Strict):
    """The supervised phase; targets come from ``data.warm_start`` or from a field of the rows."""

    epochs: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    batch_size: int = Field(ge=1)
    reference_field: str | None


class Hyperparameters(_Strict):
    """The reinforcement phase. Lengths in tokens, intervals in steps.

    ``docs/hyperparameters.md`` says what each does; zeros turn off what they bound.
    """

    algorithm: Literal[
        "grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "reinforce++", "ppo"
    ]
    batch_size: int = Field(ge=1)
    group_size: int = Field(ge=2)
    max_steps: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    temperature: float = Field(gt=0)
    max_completion_tokens: int = Field(ge=1)
    eval_interval: int = Field(ge=1)
    eval_samples: int = Field(ge=0)

    clip_low: float = Field(ge=0)
    clip_high: float = Field(gt=0)
    dual_clip: float = Field(ge=0)
    cispo_weight_cap: float = Field(gt=0)
    sapo_temperature_positive: float = Field(gt=0)
    sapo_temperature_negative: float = Field(gt=0)
    kl_coefficient: float = Field(ge=0)
    kl_estimator: Literal["k1", "k2", "k3"]
    kl_placement: Literal["loss", "reward"]
    sampler_correction: Literal[
        "none",
        "token_truncate",
        "sequence_truncate",
        "token_mask",
        "sequence_mask",
        "icepop",
        "geometric_mask",
    ]
    correction_low: float = Field(ge=0)
    correction_high: float = Field(gt=0)
    mask_truncated: bool
    overlong_buffer_tokens: int = Field(ge=0)
    overlong_penalty: float = Field(ge=0)
    resample_rounds: int = Field(ge=0)
    rollout_epochs: int = Field(ge=1)
    minibatches: int = Field(ge=1)
    max_staleness: int = Field(ge=0, le=1)
    discount: float = Field(ge=0, le=1)
    gae_lambda: float = Field(ge=0, le=1)
    critic_learning_rate: float = Field(gt=0)
    value_clip: float = Field(ge=0)


class DryRunSpec(_Strict):
    """Sample and grade instead of training; ``price_per_hour`` is that of this process."""

    rows: int = Field(ge=1)
    samples_per_row: int = Field(ge=2)
    price_per_hour: float | None
    currency: str


class ReinforcementSpec(_Strict):
    """A grader's scores as rewards, after an optional supervised phase."""

    type: Literal["reinforcement"]
    grader: dict[str, Any]
    #: A grader that is shown validation completions only.
    monitor_grader: dict[str, Any] | None
    dry_run: DryRunSpec | None
    #: Whether groups are looked at before the first step, and training is refused without spread.
    spread_check: Literal["refuse", "warn", "off"]
    warm_start: WarmStartSpec | None
    hyperparameters: Hyperparameters
    failure_share_limit: float = Field(gt=0, le=1)


class SupervisedSpec(_Strict):
    """Imitate the assistant messages of the training rows."""

    type: Literal["supervised"]
    batch_size: int = Field(ge=1)
    max_steps: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    eval_interval: int = Field(ge=1)
    #: Validation rows of a look between the ends of epochs.
    eval_samples: int = Field(ge=1)


class PreferenceSpec(_Strict):
    """Prefer one answer of each row to the other; OpenAI's name for the method is ``dpo``."""

    type: Literal["dpo"]
    loss: Literal["dpo", "orpo", "kto"]
    beta: float = Field(gt=0)
    batch_size: int = Field(ge=1)
    max_steps: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    eval_interval: int = Field(ge=1)
    eval_samples: int = Field(ge=1)


MethodSpec = Annotated[
    ReinforcementSpec | SupervisedSpec | PreferenceSpec, Field(discriminator="type")
]


class TrainSpec(_Strict):
    """One job, as the training process sees it. No field has a default: the caller resolves all."""

    job_id: str
    seed: int
    model: ModelSpec
    init: str | None
    adapter: AdapterSpec
    data: DataSpec
    method: MethodSpec
    limits: LimitsSpec
    checkpoint_interval: int = Field(ge=1)
    engine: Literal["vllm", "transformers"]
    dtype: Literal["bfloat16", "float32"]
    threads: int = Field(ge=0)
    #: Processes that share the work of each update; the first of them does all else.
    processes: int = Field(ge=1)
    sampler_memory_share: float = Field(gt=0, lt=1)

    @property
    def reinforcement(self) -> ReinforcementSpec:
        """The method of a reinforcement job."""
        assert isinstance(self.method, ReinforcementSpec)
        return self.method

    @classmethod
    def load(cls, job_dir: Path) -> "TrainSpec":
        """Read ``spec.json`` of a job directory."""
        return cls.model_validate_json((job_dir / "spec.json").read_text())
