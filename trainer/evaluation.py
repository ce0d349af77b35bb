"""Evaluation: fixed rows, greedy, apart from training; every number traceable to its rows.

The validation rows are split once. The first ``eval_samples`` choose: they are evaluated at
intervals and decide which checkpoint is best. The rest is held out: it is evaluated with the base
model, after the warm start and at the end, and decides nothing.
"""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders.outcome import Abstain, Failure, to_wire
from trainer.data import PromptRow
from trainer.rollout.base import Sampling
from trainer.sampling import Collector, Rollout, check_failures
from trainer.statistics import interval, paired_gain

#: A row is solved when its score reaches this.
FULL_MARKS = 1.0


@dataclass(frozen=True)
class Evaluator:
    """Evaluates the sampler's present weights on the validation rows."""

    collector: Collector
    rows: list[PromptRow]
    selection_rows: int
    max_tokens: int
    directory: Path
    failure_share_limit: float

    def selection(self) -> list[Rollout]:
        """Evaluate the rows that choose.

        Raises:
            GraderFailures: too few have a score to choose by.
        """
        rollouts = self._sample(self.rows[: self.selection_rows])
        check_failures(rollouts, self.failure_share_limit)
        return rollouts

    def full(self, *, may_fail: bool) -> list[Rollout]:
        """Evaluate every row.

        Args:
            may_fail: whether completions that cannot be graded are only counted, as a base model's.

        Raises:
            GraderFailures: too few have a score.
        """
        rollouts = self._sample(self.rows)
        if not may_fail:
            check_failures(rollouts, self.failure_share_limit)
        return rollouts

    def stage(self, name: str, step: int, rollouts: list[Rollout]) -> dict[str, Any]:
        """Write a report of a full evaluation and return its summary with per-row results."""
        selection, held_out = rollouts[: self.selection_rows], rollouts[self.selection_rows :]
        stage = {
            "stage": name,
            "step": step,
            "selection": summarize(selection),
            "held_out": summarize(held_out),
            "held_out_rows": [
                {"row": r.row.index, "score": r.score, "solved": _solved_or_unknown(r)}
                for r in held_out
            ],
        }
        report = {**stage, "rows": [_row_report(r) for r in rollouts]}
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
        return stage

    def path(self, name: str) -> Path:
        """Where the report of a stage is written."""
        return self.directory / f"evaluation_{name}.json"

    @property
    def sampling(self) -> Sampling:
        """Greedy, so that a report can be made again."""
        return Sampling(0.0, self.max_tokens, seed=0)

    def _sample(self, rows: list[PromptRow]) -> list[Rollout]:
        return self.collector.collect(rows, self.sampling)


def is_solved(rollout: Rollout) -> bool:
    """Whether a completion got full marks."""
    return rollout.score is not None and rollout.score >= FULL_MARKS - 1e-9


def mean_score(rollouts: list[Rollout]) -> float | None:
    """Mean over the completions that have a score; ``None`` when none has."""
    scores = [r.score for r in rollouts if r.score is not None]
    return sum(scores) / len(scores) if scores else None


def summarize(rollouts: list[Rollout]) -> dict[str, Any]:
    """Counts, reward and solve rate of a set of rows, with 95 % intervals.

    A row that could not be graded is not solved; one on which the grader abstained is neither.
    """
    names = sorted({name for r in rollouts for name in getattr(r.outcome, "sub_scores", {})})
    return {
        "rows": len(rollouts),
        "failures": sum(isinstance(r.outcome, Failure) for r in rollouts),
        "abstentions": sum(isinstance(r.outcome, Abstain) for r in rollouts),
        "truncated": sum(r.completion.truncated for r in rollouts),
        "reward": interval([r.score for r in rollouts if r.score is not None]),
        "solved": interval(
            [float(s) for r in rollouts if (s := _solved_or_unknown(r)) is not None]
        ),
        "sub_scores": {
            name: interval(
                [
                    r.outcome.sub_scores[name]
                    for r in rollouts
                    if name in getattr(r.outcome, "sub_scores", {})
                ]
            )
            for name in names
        },
    }


def table(stages: list[dict[str, Any]]) -> dict[str, Any]:
    """The evaluation table of a job: its stages, and each one's held-out gain over the one before.

    Gains are row-wise: the interval is that of the difference, not of two separate means.
    """
    gains = []
    for before, after in itertools.pairwise(stages):
        rows = zip(before["held_out_rows"], after["held_out_rows"], strict=True)
        known = [
            (float(b["solved"]), float(a["solved"]))
            for b, a in rows
            if b["solved"] is not None and a["solved"] is not None
        ]
        gain = paired_gain([b for b, _ in known], [a for _, a in known])
        gains.append({"from": before["stage"], "to": after["stage"], "solved": gain})
    return {"stages": stages, "gains": gains}


def _solved_or_unknown(rollout: Rollout) -> bool | None:
    return None if isinstance(rollout.outcome, Abstain) else is_solved(rollout)


def _row_report(rollout: Rollout) -> dict[str, Any]:
    return {
        "row": rollout.row.index,
        "text": rollout.text,
        "truncated": rollout.completion.truncated,
        "prompt_tokens": len(rollout.row.token_ids),
        "completion_tokens": len(rollout.completion.token_ids),
        "outcome": to_wire(rollout.outcome),
        "traces": [trace.wire() for trace in rollout.traces],
    }
