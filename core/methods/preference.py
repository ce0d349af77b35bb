"""`method.dpo`: prefer one of the two outputs of each row."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from core.methods.limits import Limits
from core.methods.offline import OfflineHyperparameters
from core.methods.ranges import Auto, Block, Range


class PreferenceHyperparameters(OfflineHyperparameters):
    """Hyperparameters of preference fine-tuning."""

    beta: Annotated[float | Auto, BeforeValidator(Range(float, 0, 2, open_low=True))] = Field(
        "auto",
        description="How close to the starting model it stays; for `orpo` what preferences weigh.",
    )
    loss: Literal["auto", "dpo", "orpo", "kto"] = Field(
        "auto", description="What is minimised; see [preferences](dpo.md#losses)."
    )


class Preference(Block):
    """How to learn preferences; every field may be left out."""

    hyperparameters: PreferenceHyperparameters = Field(
        default_factory=PreferenceHyperparameters,
        description="How to train; `auto` where left out.",
    )
    limits: Limits = Field(
        default_factory=Limits,
        description="What ends the job before its last step, with its checkpoints kept.",
    )
