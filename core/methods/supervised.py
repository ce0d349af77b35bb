"""`method.supervised`: imitate the assistant's messages of the training file."""

from pydantic import Field

from core.methods.limits import Limits
from core.methods.offline import OfflineHyperparameters
from core.methods.ranges import Block


class SupervisedHyperparameters(OfflineHyperparameters):
    """Hyperparameters of supervised fine-tuning."""


class Supervised(Block):
    """How to imitate; every field may be left out."""

    hyperparameters: SupervisedHyperparameters = Field(
        default_factory=SupervisedHyperparameters,
        description="How to train; `auto` where left out.",
    )
    limits: Limits = Field(
        default_factory=Limits,
        description="What ends the job before its last step, with its checkpoints kept.",
    )
