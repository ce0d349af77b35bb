"""What one training process is told: the contents of ``spec.json``, every value resolved."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSpec(_Strict):
    """The base model on local disk, in Hugging Face layout."""

    id: str
    path: Path
    context_tokens: int = Field(ge=8)


class DataSpec(_Strict):
    """JSONL files, relative to the job directory."""

    train: str
    validation: str | None
    warm_start: str | None


class WarmStartSpec(_Strict):
    """The supervised phase; targets come from ``data.warm_start`` or from a field of the rows."""

    epochs: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    batch_size: int = Field(ge=1)
    reference_field: str | None


class Hyperparameters(_Strict):
    """The reinforcement phase. Lengths in tokens, intervals in steps."""

    algorithm: Literal["grpo", "dr_grpo"]
    batch_size: int = Field(ge=1)
    group_size: int = Field(ge=2)
    max_steps: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    temperature: float = Field(gt=0)
    max_completion_tokens: int = Field(ge=1)
    kl_coefficient: float = Field(ge=0)
    lora_rank: int = Field(ge=0)
    eval_interval: int = Field(ge=1)
    eval_samples: int = Field(ge=0)


class DryRunSpec(_Strict):
    """Sample and grade instead of training; ``price_per_hour`` is that of this process."""

    rows: int = Field(ge=1)
    samples_per_row: int = Field(ge=2)
    price_per_hour: float | None
    currency: str


class TrainSpec(_Strict):
    """One job, as the training process sees it. No field has a default: the caller resolves all."""

    job_id: str
    seed: int
    model: ModelSpec
    init: str | None
    data: DataSpec
    grader: dict[str, Any]
    dry_run: DryRunSpec | None
    #: Whether groups are looked at before the first step, and training is refused without spread.
    spread_check: Literal["refuse", "warn", "off"]
    warm_start: WarmStartSpec | None
    hyperparameters: Hyperparameters
    checkpoint_interval: int = Field(ge=1)
    failure_share_limit: float = Field(gt=0, le=1)
    engine: Literal["vllm", "transformers"]
    dtype: Literal["bfloat16", "float32"]
    threads: int = Field(ge=0)
    sampler_memory_share: float = Field(gt=0, lt=1)

    @classmethod
    def load(cls, job_dir: Path) -> "TrainSpec":
        """Read ``spec.json`` of a job directory."""
        return cls.model_validate_json((job_dir / "spec.json").read_text())
