"""Guards that end a reinforcement job whose policy goes astray.

What a step measures is the policy before its update. One step's figure can be an outlier, so a
limit counts as passed after ``PATIENCE`` steps in a row; while it is being passed no checkpoint is
due, so the last one is of a policy that kept the limits.
"""

from dataclasses import dataclass

from trainer.errors import EntropyCollapse, KlRunaway
from trainer.spec import LimitsSpec

#: Steps in a row beyond a limit that end the job.
PATIENCE = 3


@dataclass
class Breaches:
    """For how many steps in a row each limit has been passed."""

    entropy: int = 0
    kl: int = 0


class Guards:
    """Holds ``min_entropy`` and ``max_kl``; zeros hold nothing."""

    def __init__(self, limits: LimitsSpec, breaches: Breaches) -> None:
        self._limits, self._breaches = limits, breaches

    @property
    def breached(self) -> bool:
        """Whether the last step passed a limit."""
        return self._breaches.entropy > 0 or self._breaches.kl > 0

    def check(self, step: int, *, entropy: float | None, kl: float | None) -> None:
        """Look at a step's means per token, in nats; ``None`` where nothing was measured.

        Raises:
            EntropyCollapse, KlRunaway: the limit was passed ``PATIENCE`` times in a row.
        """
        lowest, highest = self._limits.min_entropy, self._limits.max_kl
        if entropy is not None:
            self._breaches.entropy = self._breaches.entropy + 1 if entropy < lowest else 0
        if kl is not None:
            self._breaches.kl = self._breaches.kl + 1 if 0 < highest < kl else 0
        if self._breaches.entropy >= PATIENCE:
            raise EntropyCollapse(
                f"The mean entropy was under min_entropy={lowest:g} nats per token for {PATIENCE} "
                f"steps, {entropy:.3g} at step {step}: the model gives nearly the same answer "
                "every time. Lower learning_rate, raise temperature, or set limits.min_entropy "
                "to 0."
            )
        if self._breaches.kl >= PATIENCE:
            raise KlRunaway(
                f"The mean KL to the starting model was above max_kl={highest:g} nats per token "
                f"for {PATIENCE} steps, {kl:.3g} at step {step}: the model runs away from where "
                "it started. Lower learning_rate, raise kl_coefficient, or raise limits.max_kl."
            )
