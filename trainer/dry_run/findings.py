"""Parts of the report that list what went wrong or looks odd, with examples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graders.outcome import KINDS, Failure, Score
from graders.trace import Trace
from trainer.dry_run.texts import EXAMPLES, example
from trainer.grader_health import grader_parts, traces_of
from trainer.sampling import Rollout


def failures(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """Failures by kind and grader, the most frequent first; also those that became a score."""
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for rollout in rollouts:
        for grader, kind, detail, stood_in in _failed(rollout):
            entry = found.setdefault((kind, grader), _entry(kind, grader))
            entry["count"] += 1
            entry["stood_in"] += stood_in
            if len(entry["examples"]) < EXAMPLES:
                entry["examples"].append(example(rollout, detail))
    for entry in found.values():
        entry["share"] = entry["count"] / len(rollouts)
    return sorted(found.values(), key=lambda entry: -entry["count"])


def _failed(rollout: Rollout) -> list[tuple[str | None, str, str, bool]]:
    match rollout.outcome:
        case Failure(kind, detail, grader):
            return [(grader, kind, detail, False)]
        case Score(notes=notes):
            return [(note.grader, note.kind, note.detail, True) for note in notes]
    return []


def _entry(kind: str, grader: str | None) -> dict[str, Any]:
    known = KINDS[kind]
    return {
        "kind": kind,
        "flag": known.flag,
        "meaning": known.meaning,
        "blame": known.blame,
        "grader": grader,
        "count": 0,
        "stood_in": 0,
        "share": 0.0,
        "examples": [],
    }


def grader_uses(grader: dict[str, Any], rollouts: list[Rollout]) -> list[dict[str, Any]]:
    """Speed, scores and tokens of each grader, the whole one first."""
    kinds = [kind for _, kind in grader_parts(grader)]
    found = traces_of(grader, rollouts).items()
    return [
        _use(name, kind, traces)
        for (name, traces), kind in zip(found, kinds, strict=True)
        if traces
    ]


def _use(name: str, kind: str, traces: list[Trace]) -> dict[str, Any]:
    scores = [trace.score for trace in traces if trace.score is not None]
    latencies = [trace.latency_s for trace in traces if not trace.cached] or [0.0]
    usages = [trace.usage for trace in traces if trace.usage is not None]
    tokens = {
        "prompt": sum(usage.prompt_tokens for usage in usages),
        "completion": sum(usage.completion_tokens for usage in usages),
        "cached": sum(usage.cached_tokens for usage in usages),
    }
    p50, p95 = np.percentile(latencies, [50, 95])
    return {
        "grader": name,
        "type": kind,
        "model": next((trace.model for trace in traces if trace.model), None),
        "runs": len(traces),
        "score_mean": sum(scores) / len(scores) if scores else None,
        "latency_s": {
            "mean": sum(latencies) / len(latencies),
            "p50": float(p50),
            "p95": float(p95),
        },
        "attempts": sum(trace.attempts for trace in traces),
        "cached": sum(trace.cached for trace in traces),
        "tokens": tokens if usages else None,
    }


def disagreement(grader: dict[str, Any], rollouts: list[Rollout]) -> list[dict[str, Any]]:
    """How alike the votes of each judge were that was asked more than once."""
    found = []
    for name, _ in grader_parts(grader):
        judged = [
            (trace.agreement, rollout)
            for rollout in rollouts
            for trace in rollout.traces
            if trace.grader == name and trace.agreement is not None
        ]
        if not judged:
            continue
        values = [value for value, _ in judged]
        lowest = _one_per_row(sorted(judged, key=lambda pair: pair[0]))
        found.append(
            {
                "grader": name,
                "judged": len(judged),
                "agreement_mean": sum(values) / len(values),
                "agreement_p10": float(np.percentile(values, 10)),
                "examples": [example(r, f"agreement {value:.2f}") for value, r in lowest],
            }
        )
    return found


def _one_per_row(judged: list[tuple[float, Rollout]]) -> list[tuple[float, Rollout]]:
    # The votes are on a whole group, so its completions all say the same.
    rows: dict[int, tuple[float, Rollout]] = {}
    for value, rollout in judged:
        rows.setdefault(rollout.row.index, (value, rollout))
    return list(rows.values())[:EXAMPLES]


def hint_counts(rollouts: Sequence[Rollout], hints: Sequence[list[str]]) -> list[dict[str, Any]]:
    """Each hint with its count and examples, the most frequent first."""
    found: dict[str, dict[str, Any]] = {}
    for rollout, said in zip(rollouts, hints, strict=True):
        for hint in said:
            entry = found.setdefault(hint, {"hint": hint, "count": 0, "examples": []})
            entry["count"] += 1
            if len(entry["examples"]) < EXAMPLES:
                score = "no score" if rollout.score is None else f"score {rollout.score:.3g}"
                entry["examples"].append(example(rollout, score))
    return sorted(found.values(), key=lambda entry: -entry["count"])
