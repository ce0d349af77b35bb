"""What a job optimises, as choices that are independent of each other.

An algorithm is a name for a combination of these choices; the loop reads the choices and knows no
names. ``docs/algorithms.md`` has the formulas.
"""

from dataclasses import dataclass
from typing import Literal

from trainer.spec import Hyperparameters

#: How a completion, or each of its tokens, is compared with others.
Advantage = Literal["group_scaled", "group_centred", "leave_one_out", "whitened_returns", "gae"]

#: What π/π_old is taken of: each token, the mean of a completion's tokens in log space, their sum.
Ratio = Literal["token", "sequence_mean", "sequence_sum"]

#: What holds the ratio near 1.
Surrogate = Literal["clip", "cispo", "sapo"]

#: What the loss is a mean of.
Aggregation = Literal["completion_mean", "token_mean", "constant_length"]

_CHOICES: dict[str, tuple[Advantage, Ratio, Surrogate, Aggregation]] = {
    "grpo": ("group_scaled", "token", "clip", "completion_mean"),
    "dr_grpo": ("group_centred", "token", "clip", "constant_length"),
    "dapo": ("group_scaled", "token", "clip", "token_mean"),
    "gspo": ("group_scaled", "sequence_mean", "clip", "completion_mean"),
    "cispo": ("group_scaled", "token", "cispo", "token_mean"),
    "sapo": ("group_scaled", "token", "sapo", "completion_mean"),
    "rloo": ("leave_one_out", "sequence_sum", "clip", "completion_mean"),
    "reinforce++": ("whitened_returns", "token", "clip", "token_mean"),
    "ppo": ("gae", "token", "clip", "token_mean"),
}


@dataclass(frozen=True)
class Kl:
    """The penalty for moving away from the reference, per token; coefficient 0 is none.

    ``weighted`` multiplies the estimate in the loss by the ratio, which makes its gradient that of
    the divergence (see :func:`trainer.objectives.kl.kl_loss`).
    """

    coefficient: float
    estimator: Literal["k1", "k2", "k3"]
    placement: Literal["loss", "reward"]
    weighted: bool


@dataclass(frozen=True)
class Correction:
    """What is done about the sampler's numbers, which differ from the trainer's in the last digits.

    Weights are cut at ``low`` and ``high``, or kept between them.
    """

    kind: Literal[
        "none",
        "token_truncate",
        "sequence_truncate",
        "token_mask",
        "sequence_mask",
        "icepop",
        "geometric_mask",
    ]
    low: float
    high: float


@dataclass(frozen=True)
class Objective:
    """The resolved choices of one job. Zeros turn off what they bound."""

    advantage: Advantage
    ratio: Ratio
    surrogate: Surrogate
    aggregation: Aggregation
    #: The ratio counts between ``1 − clip_low`` and ``1 + clip_high``.
    clip_low: float
    clip_high: float
    #: Largest ratio that counts where the advantage is negative.
    dual_clip: float
    #: Largest weight that "cispo" gives.
    weight_cap: float
    #: Sharpness of the gate of "sapo", where the advantage is positive and elsewhere.
    temperature_positive: float
    temperature_negative: float
    kl: Kl
    correction: Correction
    discount: float
    gae_lambda: float
    value_clip: float

    @classmethod
    def of(cls, hp: Hyperparameters) -> "Objective":
        """The choices that a job's hyperparameters make."""
        advantage, ratio, surrogate, aggregation = _CHOICES[hp.algorithm]
        return cls(
            advantage=advantage,
            ratio=ratio,
            surrogate=surrogate,
            aggregation=aggregation,
            clip_low=hp.clip_low,
            clip_high=hp.clip_high,
            dual_clip=hp.dual_clip,
            weight_cap=hp.cispo_weight_cap,
            temperature_positive=hp.sapo_temperature_positive,
            temperature_negative=hp.sapo_temperature_negative,
            kl=_kl(hp),
            correction=Correction(hp.sampler_correction, hp.correction_low, hp.correction_high),
            discount=hp.discount,
            gae_lambda=hp.gae_lambda,
            value_clip=hp.value_clip,
        )

    @property
    def needs_reference(self) -> bool:
        """Whether the reference's log-probabilities enter the loss or the reward."""
        return self.kl.coefficient > 0

    @property
    def kl_in_loss(self) -> bool:
        """Whether tokens without advantage have a gradient too."""
        return self.needs_reference and self.kl.placement == "loss"

    @property
    def kl_in_reward(self) -> bool:
        """Whether rewards need the reference before advantages are computed."""
        return self.needs_reference and self.kl.placement == "reward"

    @property
    def compares_groups(self) -> bool:
        """Whether a group without a spread of scores teaches nothing."""
        return self.advantage not in ("whitened_returns", "gae")

    @property
    def has_critic(self) -> bool:
        """Whether advantages need a value per token."""
        return self.advantage == "gae"


def _kl(hp: Hyperparameters) -> Kl:
    # k2's own gradient is that of the divergence already.
    weighted = hp.kl_estimator != "k2"
    return Kl(hp.kl_coefficient, hp.kl_estimator, hp.kl_placement, weighted)
