"""Whether groups have a spread of scores: without one, a group teaches nothing.

A group is compared as the reinforcement step compares it: completions that could not be graded,
and those that were cut where cut ones are left out, take no part, and fewer than two that do are no
comparison. Scores are the grader's own: what shapes a reward gives every group a spread.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graders.outcome import Failure
from trainer.evaluation import FULL_MARKS
from trainer.limits import REFUSE_SHARE, WARN_SHARE
from trainer.sampling import Rollout

Kind = Literal["spread", "all_solved", "all_same", "too_few"]


def comparable(rollout: Rollout, *, mask_truncated: bool) -> float | None:
    """The score that a group is compared by; ``None`` for a completion that takes no part.

    A truncated completion was cut by us, not ended by the model: with ``mask_truncated`` it teaches
    nothing. It is kept out of the mean too, or the completions that did end would be measured
    against a text that never had to.
    """
    return None if mask_truncated and rollout.completion.truncated else rollout.score


def groups_of(rollouts: list[Rollout], size: int) -> list[list[Rollout]]:
    """Cut rollouts into their groups."""
    return [rollouts[i : i + size] for i in range(0, len(rollouts), size)]


def kind_of(group: Sequence[Rollout], solved_at: float, *, mask_truncated: bool) -> Kind:
    """Whether a group has spread, or why it has none."""
    found = (comparable(r, mask_truncated=mask_truncated) for r in group)
    scores = [score for score in found if score is not None]
    if len(scores) < 2:
        return "too_few"
    if max(scores) > min(scores):
        return "spread"
    return "all_solved" if reaches(scores[0], solved_at) else "all_same"


def reaches(score: float | None, solved_at: float) -> bool:
    """Whether a score reaches the one from which a completion counts as solved."""
    return score is not None and score >= solved_at - 1e-9


@dataclass(frozen=True)
class Spread:
    """Groups counted by ``kind_of``, and what became of their completions."""

    with_spread: int
    all_solved: int
    all_same: int
    too_few: int
    completions: int
    truncated: int
    failed: int

    @classmethod
    def of(
        cls, groups: Iterable[Sequence[Rollout]], *, solved_at: float, mask_truncated: bool
    ) -> "Spread":
        """Count groups."""
        groups = list(groups)
        kinds = [kind_of(group, solved_at, mask_truncated=mask_truncated) for group in groups]
        rollouts = [r for group in groups for r in group]
        return cls(
            with_spread=kinds.count("spread"),
            all_solved=kinds.count("all_solved"),
            all_same=kinds.count("all_same"),
            too_few=kinds.count("too_few"),
            completions=len(rollouts),
            truncated=sum(r.completion.truncated for r in rollouts),
            failed=sum(isinstance(r.outcome, Failure) for r in rollouts),
        )

    @property
    def total(self) -> int:
        """All groups."""
        return self.with_spread + self.without

    @property
    def without(self) -> int:
        """Groups that teach nothing."""
        return self.all_solved + self.all_same + self.too_few

    @property
    def share_without(self) -> float:
        """Share of the groups that teach nothing."""
        return self.without / self.total

    @property
    def level(self) -> Literal["good", "warn", "bad"]:
        """What the share means for a job."""
        if self.share_without >= REFUSE_SHARE:
            return "bad"
        return "warn" if self.share_without >= WARN_SHARE else "good"

    @property
    def message(self) -> str:
        """The share in a sentence."""
        if self.level == "good":
            return (
                f"{self.with_spread} of {self.total} groups ({1 - self.share_without:.0%}) have a "
                "spread of scores to learn from."
            )
        return (
            f"{self.without} of {self.total} groups ({self.share_without:.0%}) have no spread of "
            "scores, so training learns nothing from them."
        )

    def advice(self, *, max_completion_tokens: int) -> list[str]:
        """What to do about groups without spread, the most frequent cause first."""
        causes = [
            (
                self.all_same,
                f"{_groups(self.all_same, 'scores', 'score')} the same below full marks every "
                "time: add a warm_start, reward partial progress in the grader, or use easier "
                "rows.",
            ),
            (
                self.all_solved,
                f"{_groups(self.all_solved, 'is', 'are')} solved every time: use harder rows, or a "
                "grader that asks for more.",
            ),
            (
                self.too_few,
                f"{_groups(self.too_few, 'has', 'have')} fewer than two completions to compare: "
                + self._lost(max_completion_tokens),
            ),
        ]
        return [text for count, text in sorted(causes, reverse=True) if count]

    def _lost(self, max_completion_tokens: int) -> str:
        cut, failed = self.truncated / self.completions, self.failed / self.completions
        if cut >= failed:
            return (
                f"{cut:.0%} of all were cut at max_completion_tokens={max_completion_tokens}; "
                "raise it, or ask for shorter answers."
            )
        return f"{failed:.0%} of all could not be graded; mend the grader or the data."

    def wire(self) -> dict[str, Any]:
        """The groups as the report of a dry run shows them."""
        return {
            "total": self.total,
            "with_spread": self.with_spread,
            "without_spread": self.without,
            "share_without_spread": self.share_without,
            "all_solved": self.all_solved,
            "all_same": self.all_same,
            "too_few": self.too_few,
        }


def solved_at(grader: dict[str, Any]) -> float:
    """The score from which on a completion counts as solved: the grader's, or full marks."""
    threshold = grader.get("pass_threshold")
    return FULL_MARKS if threshold is None else float(threshold)


def _groups(count: int, one: str, many: str) -> str:
    return f"1 group {one}" if count == 1 else f"{count} groups {many}"
