"""How each grader of a job is doing, as its traces tell."""

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from graders.trace import Trace
from trainer.sampling import Rollout


def grader_parts(grader: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and type of a grader, and of its children after it."""
    children = grader.get("graders", {})
    return [
        (grader["name"], grader["type"]),
        *((name, child["type"]) for name, child in children.items()),
    ]


def grader_health(grader: dict[str, Any], rollouts: list[Rollout]) -> dict[str, dict[str, Any]]:
    """Scores, failures, seconds and tokens of each grader by name.

    A child with the name of the whole goes by ``name.name``. ``mean`` and ``latency_mean_s`` are
    ``None`` where there is nothing to take the mean of; latency counts the grader's own work, not
    the time in which it waited for its turn.
    """
    return {name: _health(traces) for name, traces in traces_of(grader, rollouts).items()}


def traces_of(grader: dict[str, Any], rollouts: list[Rollout]) -> dict[str, list[Trace]]:
    """The traces of each grader, by the names of ``grader_health``."""
    (whole, _), *children = grader_parts(grader)
    # The whole grader's trace comes first, as it starts first.
    found = {whole: [r.traces[0] for r in rollouts if r.traces]}
    parts = list(itertools.chain.from_iterable(r.traces[1:] for r in rollouts))
    for name, _ in children:
        key = name if name != whole else f"{whole}.{name}"
        found[key] = [trace for trace in parts if trace.grader == name]
    return found


def _health(traces: list[Trace]) -> dict[str, Any]:
    worked = [trace.latency_s for trace in traces if not trace.cached]
    return {
        "mean": _mean(trace.score for trace in traces if trace.score is not None),
        "latency_mean_s": _mean(worked),
        "failures": dict(Counter(trace.failure for trace in traces if trace.failure)),
        "abstained": sum(trace.score is None and trace.failure is None for trace in traces),
        "tokens": sum(trace.usage.total_tokens for trace in traces if trace.usage),
        "cached": sum(trace.cached for trace in traces),
    }


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None
