"""What methods that learn from fixed rows have in common: nothing is sampled, nothing graded."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from core.methods.adapter import LoraAlpha, LoraRank, LoraTargets, Quantization
from core.methods.ranges import BATCH_SIZE, COUNT, EPOCHS, POSITIVE, Auto, Block


class OfflineHyperparameters(Block):
    """Hyperparameters of learning from fixed rows: OpenAI's, then this service's own."""

    batch_size: Annotated[int | Auto, BeforeValidator(BATCH_SIZE)] = Field(
        "auto", description="Rows per step, at most the rows there are."
    )
    learning_rate_multiplier: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Scales the automatic learning rate; an explicit one stays as given."
    )
    n_epochs: Annotated[int | Auto, BeforeValidator(EPOCHS)] = Field(
        "auto", description="Passes over the training file."
    )
    learning_rate: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Peak learning rate."
    )
    max_steps: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Most steps to run; with `n_epochs` too, whichever ends first."
    )
    eval_interval: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Steps between two looks at rows of the validation file."
    )
    eval_samples: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Validation rows per look; the end of an epoch takes all of them."
    )
    lora_rank: LoraRank = "auto"
    lora_alpha: LoraAlpha = "auto"
    lora_targets: LoraTargets = "auto"
    quantization: Quantization = "none"
