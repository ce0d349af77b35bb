"""The report of a dry run, from its rollouts alone."""

from typing import Any

import numpy as np

from graders.lint import hints
from graders.outcome import Abstain, Failure, Score
from trainer.dry_run.estimate import Rates, estimate
from trainer.dry_run.findings import disagreement, failures, grader_uses, hint_counts
from trainer.dry_run.grader import parsed
from trainer.dry_run.suspicious import suspicious
from trainer.dry_run.texts import prompt_of
from trainer.dry_run.verdict import verdict
from trainer.sampling import Rollout, sample_of
from trainer.spec import TrainSpec
from trainer.spread import Spread, kind_of, reaches, solved_at
from trainer.statistics import interval

#: Bars of the histogram.
BINS = 10


def make_report(
    spec: TrainSpec,
    groups: list[list[Rollout]],
    rates: Rates,
    *,
    rows_in_file: int,
    validation_rows: int,
) -> dict[str, Any]:
    """The report as JSON; the API's schemas say what each figure means."""
    assert spec.reinforcement.dry_run is not None
    rollouts = [rollout for group in groups for rollout in group]
    threshold = solved_at(spec.reinforcement.grader)
    hp = spec.reinforcement.hyperparameters
    spread = Spread.of(groups, solved_at=threshold, mask_truncated=hp.mask_truncated)
    scores = [score for r in rollouts if (score := r.score) is not None]
    grader = parsed(spec.reinforcement.grader)
    said = [hints(grader, sample_of(r.text, r.completion), r.row.item) for r in rollouts]
    return {
        "version": 1,
        "verdict": verdict(spec, rollouts, spread),
        "rows": len(groups),
        "rows_in_file": rows_in_file,
        "samples_per_row": spec.reinforcement.dry_run.samples_per_row,
        "completions": len(rollouts),
        "temperature": hp.temperature,
        "outcomes": _outcomes(rollouts),
        "score": interval(scores),
        "histogram": histogram(scores),
        "solved": _solved(groups, threshold),
        "groups": spread.wire(),
        "truncation": {"count": spread.truncated, "share": spread.truncated / len(rollouts)},
        "lengths": _lengths(rollouts, hp.max_completion_tokens),
        "failures": failures(rollouts),
        "disagreement": disagreement(spec.reinforcement.grader, rollouts),
        "graders": grader_uses(spec.reinforcement.grader, rollouts),
        "suspicious": suspicious(spec, rollouts, said, solved_at=threshold),
        "hints": hint_counts(rollouts, said),
        "by_row": [_row(group, threshold, mask_truncated=hp.mask_truncated) for group in groups],
        "estimate": estimate(
            spec,
            spec.reinforcement.dry_run,
            rollouts,
            spread,
            rates,
            validation_rows=validation_rows,
        ),
    }


def histogram(scores: list[float]) -> list[dict[str, Any]]:
    """Scores in ten bars: from 0 to 1, or from the lowest to the highest where some lie outside."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    # Equal scores, such as all at 2, still need bars of some width.
    high = high if high > low else low + 1.0
    counts, edges = np.histogram(scores, bins=BINS, range=(low, high))
    return [
        {"low": round(float(edges[i]), 9), "high": round(float(edges[i + 1]), 9), "count": int(n)}
        for i, n in enumerate(counts)
    ]


def _outcomes(rollouts: list[Rollout]) -> dict[str, int]:
    outcomes = [r.outcome for r in rollouts]
    return {
        "scores": sum(isinstance(o, Score) for o in outcomes),
        "abstentions": sum(isinstance(o, Abstain) for o in outcomes),
        "failures": sum(isinstance(o, Failure) for o in outcomes),
        "stood_in": sum(isinstance(o, Score) and bool(o.notes) for o in outcomes),
    }


def _solved(groups: list[list[Rollout]], threshold: float) -> dict[str, Any]:
    solved = [[reaches(r.score, threshold) for r in group] for group in groups]
    return {
        "at": threshold,
        "never": sum(not any(group) for group in solved),
        "sometimes": sum(any(group) and not all(group) for group in solved),
        "always": sum(all(group) for group in solved),
        "share": interval([float(value) for group in solved for value in group]),
    }


def _lengths(rollouts: list[Rollout], limit: int) -> dict[str, Any]:
    lengths = [len(r.completion.token_ids) for r in rollouts]
    p10, p50, p90 = np.percentile(lengths, [10, 50, 90])
    return {
        "mean": sum(lengths) / len(lengths),
        "p10": float(p10),
        "p50": float(p50),
        "p90": float(p90),
        "longest": max(lengths),
        "limit": limit,
    }


def _row(group: list[Rollout], threshold: float, *, mask_truncated: bool) -> dict[str, Any]:
    return {
        "row": group[0].row.index,
        "prompt": prompt_of(group[0]),
        "scores": [r.score for r in group],
        "solved": sum(reaches(r.score, threshold) for r in group),
        "truncated": sum(r.completion.truncated for r in group),
        "failed": sum(isinstance(r.outcome, Failure) for r in group),
        "spread": kind_of(group, threshold, mask_truncated=mask_truncated) == "spread",
    }
