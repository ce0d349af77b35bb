"""What the figures of a dry run mean for a job, and what to do."""

from collections import Counter
from typing import Any

from graders.outcome import Blame, Failure
from trainer.objectives.objective import Objective
from trainer.sampling import Rollout
from trainer.spec import TrainSpec
from trainer.spread import Spread
from trainer.watch.signs.completions import TRUNCATED_SHARE

_RANK = ("good", "warn", "bad")

#: What to do about failures, by who is to blame for them.
_MENDING: dict[Blame, str] = {
    "sample": "Give grader {grader!r} an invalid_grade, the score of a completion that it cannot "
    "read, or ask for the form in the prompt.",
    "data": "Mend the rows that grader {grader!r} cannot use; failures shows examples.",
    "grader": "Mend grader {grader!r}; failures shows examples.",
    "infrastructure": "Have the operator look at what grader {grader!r} needs; failures shows "
    "examples.",
}


def verdict(spec: TrainSpec, rollouts: list[Rollout], spread: Spread) -> dict[str, Any]:
    """The ``verdict`` of the report: the worst finding leads."""
    hp = spec.reinforcement.hyperparameters
    limit = hp.max_completion_tokens
    findings: list[tuple[str, str]]
    if Objective.of(hp).compares_groups:
        findings = [(spread.level, spread.message)]
        advice = [] if spread.level == "good" else spread.advice(max_completion_tokens=limit)
    else:
        findings, advice = [_differences(rollouts, hp.algorithm)], []
    failed = [r.outcome for r in rollouts if isinstance(r.outcome, Failure)]
    if failed:
        share = len(failed) / len(rollouts)
        over = share > spec.reinforcement.failure_share_limit
        worst = _most_frequent(failed)
        findings.append(("bad" if over else "warn", _failures(worst, share, spec, over=over)))
        advice.append(_MENDING[worst.blame].format(grader=worst.grader))
    cut = spread.truncated / len(rollouts)
    if cut > TRUNCATED_SHARE:
        findings.append(
            ("warn", f"{cut:.0%} of the completions were cut at max_completion_tokens={limit}.")
        )
        if not any("max_completion_tokens" in text for text in advice):
            advice.append("Raise max_completion_tokens, or ask for shorter answers.")
    if spec.reinforcement.warm_start is not None and spread.level != "good":
        advice.append(
            "The samples come from the model before its warm start; a job looks again after it."
        )
    findings.sort(key=lambda finding: -_RANK.index(finding[0]))
    return {
        "level": findings[0][0],
        "message": " ".join(text for _, text in findings),
        "advice": advice,
    }


def _differences(rollouts: list[Rollout], algorithm: str) -> tuple[str, str]:
    """The finding for an algorithm that compares all completions of a step with each other."""
    scores = {rollout.score for rollout in rollouts} - {None}
    if len(scores) > 1:
        return "good", f"Scores differ, and {algorithm} compares all completions of a step."
    return "bad", "No two completions have different scores, so training learns nothing."


def _most_frequent(failed: list[Failure]) -> Failure:
    ((kind, grader), _) = Counter((f.kind, f.grader) for f in failed).most_common(1)[0]
    return Failure(kind, "", grader)


def _failures(worst: Failure, share: float, spec: TrainSpec, *, over: bool) -> str:
    said = f"{share:.0%} of the completions could not be graded, mostly {worst.kind} in"
    said += f" {worst.grader!r}"
    if over:
        return f"{said}; a job is paused above {spec.reinforcement.failure_share_limit:.0%}."
    return f"{said}."
