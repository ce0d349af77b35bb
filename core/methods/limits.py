"""`limits` of a method: what ends a job before its last step, with its checkpoints kept."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from core.methods.ranges import COUNT, FROM_ZERO, Auto, Block, Range


class Limits(Block):
    """Budgets, and an end where nothing more is gained; for every method."""

    max_train_seconds: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Seconds of training, over all attempts, after which the job ends."
    )
    max_tokens: Annotated[int | Auto, BeforeValidator(COUNT)] = Field(
        "auto", description="Tokens sampled and trained on after which the job ends."
    )
    plateau_window: Annotated[int | Auto, BeforeValidator(Range(int, 3, 1000, zero=True))] = Field(
        "auto",
        description="Validations in a row without a slope that ends the job; 0 goes on.",
    )


class ReinforcementLimits(Limits):
    """Guards of the reinforcement phase besides."""

    min_entropy: Annotated[float | Auto, BeforeValidator(FROM_ZERO)] = Field(
        "auto", description="Mean entropy per token, in nats, under which the job ends; 0 for none."
    )
    max_kl: Annotated[float | Auto, BeforeValidator(FROM_ZERO)] = Field(
        "auto",
        description="Mean KL per token to the start, in nats, above which it ends; 0 for none.",
    )
    max_mismatch: Annotated[float | Auto, BeforeValidator(Range(float, 0, 10, open_low=True))] = (
        Field(
            "auto",
            description="Mean nats per token between sampler and trainer above which the job ends.",
        )
    )
