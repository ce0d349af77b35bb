"""What methods that learn from fixed rows have in common: nothing is sampled, nothing graded."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from core.methods.ranges import BATCH_SIZE, COUNT, EPOCHS, POSITIVE, Auto, Block, Range


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
    lora_rank: Annotated[int | Auto, BeforeValidator(Range(int, 1, 512, zero=True))] = Field(
        "auto", description="Rank of the LoRA adapter; 0 trains the full weights."
    )
    lora_alpha: Annotated[float | Auto, BeforeValidator(POSITIVE)] = Field(
        "auto", description="Scale of the adapter; its output is multiplied by alpha / rank."
    )
    lora_targets: list[str] | Literal["auto", "all-linear"] = Field(
        "auto", min_length=1, description="Names of the linear layers that carry an adapter."
    )
    quantization: Literal["none", "nf4"] = Field(
        "none", description="`nf4` trains the adapter on a base in 4 bits, where bitsandbytes is."
    )
