"""The watch over one job: what its loop tells, and what it is told to do."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from trainer.sampling import Rollout
from trainer.spec import LimitsSpec
from trainer.watch.budget import Budget, Spent
from trainer.watch.finding import Finding, Say, Stop
from trainer.watch.guards import Breaches, Guards
from trainer.watch.memory import Accumulates, MicroBatchSize, Result
from trainer.watch.plateau import Plateau, Validations
from trainer.watch.signs.completions import cut, without_score
from trainer.watch.signs.gap import Gap
from trainer.watch.signs.independent import Independent
from trainer.watch.signs.lengths import Lengths
from trainer.watch.signs.stability import Stability, far
from trainer.watch.signs.sub_scores import SubScores
from trainer.watch.signs.view import scored_groups


@dataclass
class _State:
    """All that a resumed run needs to judge as an uninterrupted one does."""

    spent: Spent = field(default_factory=Spent)
    micro_batch: MicroBatchSize = field(default_factory=MicroBatchSize)
    breaches: Breaches = field(default_factory=Breaches)
    validations: Validations = field(default_factory=Validations)
    lengths: Lengths = field(default_factory=Lengths)
    sub_scores: SubScores = field(default_factory=SubScores)
    gap: Gap = field(default_factory=Gap)
    independent: Independent = field(default_factory=Independent)
    stability: Stability = field(default_factory=Stability)
    validated_at: int | None = None
    stop: Stop | None = None
    said: list[str] = field(default_factory=list)


_states = TypeAdapter(_State)


class Watch:
    """Budgets, guards, plateau stop and signs of one job, for its loop to ask at each step.

    A loop calls ``begin`` once, ``before_step`` before each step (and leaves when it answers),
    ``within_memory`` around forward and backward, ``counted`` after each update, ``validated``
    after each validation; a reinforcement loop also ``reinforced`` after each step.

    Args:
        say: where warnings go.
    """

    def __init__(self, limits: LimitsSpec, say: Say) -> None:
        self._limits, self._say = limits, say
        self.begin({})

    def begin(self, saved: dict[str, Any]) -> None:
        """Start the clock of this attempt, and go on from what a checkpoint kept."""
        self._state = _states.validate_python(saved)
        self._budget = Budget(self._limits, self._state.spent, self._say)
        self._guards = Guards(self._limits, self._state.breaches)
        self._plateau = Plateau(self._limits.plateau_window, self._state.validations)

    def saved(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON."""
        self._state.spent = self._budget.spent
        return asdict(self._state)

    @property
    def breached(self) -> bool:
        """Whether a guard's limit is passed at present: no time for a checkpoint."""
        return self._guards.breached

    def before_step(self, phase: str) -> Stop | None:
        """Begin a step of ``phase``; a :class:`Stop` when training ends before it."""
        if self._state.stop is None:
            self._state.stop = self._budget.before_step(phase)
        return self._state.stop

    def within_memory(self, policy: Accumulates, accumulate: Callable[[int], Result]) -> Result:
        """Run forward and backward of one update with as large micro-batches as memory holds.

        Raises:
            OutOfMemory: see :meth:`MicroBatchSize.within_memory`.
        """
        return self._state.micro_batch.within_memory(policy, accumulate, self._say)

    def counted(self, phase: str, tokens: int) -> None:
        """Count the tokens that a step of ``phase`` sampled and trained on."""
        self._budget.count(phase, tokens)

    def reinforced(
        self, step: int, groups: Sequence[Sequence[Rollout]], data: dict[str, Any]
    ) -> None:
        """Look at a finished reinforcement step.

        Args:
            data: the step's metrics.

        Raises:
            EntropyCollapse, KlRunaway: see :mod:`trainer.watch.guards`.
        """
        state, seen = self._state, scored_groups(groups)
        state.gap.step(seen)
        self.tell(cut(step, data))
        self.tell(without_score(step, data))
        self.tell(state.lengths.step(seen))
        self.tell(state.sub_scores.step(seen))
        means = [sum(c.score for c in group) / len(group) for group in seen]
        self.tell(state.stability.reward(step, means))
        without = data["groups_without_spread"]
        self.tell(state.stability.left(without_spread=without, groups=len(groups)))
        if not data["trained_tokens"]:
            return  # nothing went through the model, so nothing below was measured
        entropy, kl = data["entropy"], data.get("kl_to_reference")
        self.tell(state.stability.alike(entropy, solved_share=data["train_solved_share"]))
        if kl is not None:
            self.tell(far(kl))
        self._guards.check(step, entropy=entropy, kl=kl)

    def validated(
        self,
        step: int,
        figures: list[float | None],
        *,
        monitor: list[float | None] | None = None,
        lower_is_better: bool = False,
    ) -> None:
        """Look at a validation after ``step`` steps; always of the same rows in the same order.

        Args:
            figures: each row's score or loss (``None`` where it has none), or one mean for all.
            monitor: what the monitor grader made of the same completions.
        """
        stop = self._plateau.add(step, figures, lower_is_better=lower_is_better)
        if step > 0 and self._state.stop is None:
            self._state.stop = stop
        if not lower_is_better:
            self.tell(self._state.gap.validated(figures))
        # The evaluation at an early end shows once more what the last validation showed.
        if monitor is not None and step != self._state.validated_at:
            self.tell(self._state.independent.validated(figures, monitor))
        self._state.validated_at = step

    def tell(self, finding: Finding | None) -> None:
        """Pass on a warning unless the job's user has had it before."""
        if finding is not None and finding.code not in self._state.said:
            self._state.said.append(finding.code)
            self._say(finding)
