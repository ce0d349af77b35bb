"""The monitor grader: an independent look at validation completions, which teaches nothing."""

from typing import Any

from graders.client import GraderClient
from graders.engine import Graded
from graders.outcome import Abstain, Failure, Score
from trainer.sampling import Rollout, sample_of
from trainer.watch.finding import Finding, Say


class Monitor:
    """Grades the completions of a validation a second time, with a grader of its own.

    Args:
        say: hears of every validation with failures, or without any score.
    """

    def __init__(self, client: GraderClient, say: Say) -> None:
        self._client, self._say = client, say
        self._last: list[Graded] = []

    def scores(self, rollouts: list[Rollout]) -> list[float | None]:
        """The scores of completions in their order; ``None`` where there is none.

        Raises:
            GraderProcessError: the grader's process is gone.
        """
        pairs = [(sample_of(r.text, r.completion), r.row.item) for r in rollouts]
        self._last = self._client.grade_all(pairs)
        failures = [g.outcome for g in self._last if isinstance(g.outcome, Failure)]
        if failures:
            self._say(_complaint(failures, len(self._last)))
        elif all(isinstance(g.outcome, Abstain) for g in self._last):
            self._say(_silence(len(self._last)))
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


def _complaint(failures: list[Failure], total: int) -> Finding:
    first = failures[0]
    return Finding(
        "monitor_fails",
        f"The monitor_grader could not grade {len(failures)} of {total} completions, the first one "
        f"for {first.kind}: {first.detail} Its scores leave them out; training goes on.",
        {"failures": len(failures), "completions": total, "kind": first.kind},
    )


def _silence(total: int) -> Finding:
    return Finding(
        "monitor_fails",
        f"The monitor_grader abstained on all {total} completions, so it watches nothing. They are "
        "graded one by one: a relative_model needs a 'reference'.",
        {"abstentions": total, "completions": total},
    )
