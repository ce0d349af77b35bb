"""The monitor grader: an independent look at validation completions, which teaches nothing."""

from typing import Any

from graders.client import GraderClient
from graders.engine import Graded
from graders.outcome import Failure, Score
from trainer.sampling import Rollout, sample_of


class Monitor:
    """Grades the completions of a validation a second time, with a grader of its own."""

    def __init__(self, client: GraderClient) -> None:
        self._client = client
        self._last: list[Graded] = []

    def scores(self, rollouts: list[Rollout]) -> list[float | None]:
        """The scores of completions in their order; ``None`` where there is none.

        Raises:
            GraderProcessError: the grader's process is gone.
        """
        pairs = [(sample_of(r.text, r.completion), r.row.item) for r in rollouts]
        self._last = self._client.grade_all(pairs)
        return [g.outcome.value if isinstance(g.outcome, Score) else None for g in self._last]

    def metrics(self) -> dict[str, Any]:
        """The last validation in figures."""
        scores = [g.outcome.value for g in self._last if isinstance(g.outcome, Score)]
        failed = sum(isinstance(g.outcome, Failure) for g in self._last)
        return {
            "valid_reward_mean": sum(scores) / len(scores) if scores else None,
            "failures": failed,
            "abstentions": len(self._last) - len(scores) - failed,
        }
