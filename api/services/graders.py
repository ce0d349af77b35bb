"""Trying a grader out: from a sample to OpenAI's answer."""

from collections.abc import Iterable
from typing import Any

from api.schemas.graders import (
    GraderErrors,
    GraderRun,
    GraderRunMetadata,
    ModelUsage,
)
from graders.client import Reply
from graders.outcome import KINDS, Failure, Outcome, Score, to_wire
from graders.trace import Trace

#: Flags that come with a sentence, and the field for it.
_DETAILS = {
    "python_grader_server_error": "python_grader_server_error_type",
    "python_grader_runtime_error": "python_grader_runtime_error_details",
    "model_grader_server_error": "model_grader_server_error_details",
}


def sample_of(text: str) -> dict[str, Any]:
    """Return the `sample` of a completion with this text; `output_json` is parsed when read."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"output_text": text, "output_tools": [], "choices": choices}


def answer_of(grader: dict[str, Any], reply: Reply) -> GraderRun:
    """Return the answer to one run of a normalised grader."""
    outcome, traces = reply.outcome, reply.traces
    subs: dict[str, float] = dict(getattr(outcome, "sub_scores", {}))
    usage = _usage(traces)
    name = str(grader["name"])
    metadata = GraderRunMetadata(
        name=name,
        type=str(grader["type"]),
        errors=_errors(outcome),
        execution_time=reply.latency_s,
        scores={**subs, name: outcome.value} if isinstance(outcome, Score) else subs,
        token_usage=sum(each.total_tokens for each in usage.values()) if usage else None,
        sampled_model_name=next((trace.model for trace in traces if trace.model), None),
    )
    return GraderRun(
        reward=outcome.value if isinstance(outcome, Score) else 0.0,
        metadata=metadata,
        sub_rewards=subs,
        model_grader_token_usage_per_model=usage,
        outcome=to_wire(outcome),
        traces=[trace.wire() for trace in traces],
    )


def _errors(outcome: Outcome) -> GraderErrors:
    """Set the flag of a failure, or of each failure that `invalid_grade` made a score of."""
    found: list[tuple[str, str]] = []
    if isinstance(outcome, Failure):
        found = [(outcome.kind, outcome.detail)]
    elif isinstance(outcome, Score):
        found = [(note.kind, note.detail) for note in outcome.notes]
    values: dict[str, bool | str] = {}
    for kind, detail in found:
        flag = KINDS[kind].flag
        values[flag] = True
        if flag in _DETAILS:
            values.setdefault(_DETAILS[flag], detail)
    return GraderErrors.model_validate(values)


def _usage(traces: Iterable[Trace]) -> dict[str, ModelUsage]:
    """Add up the tokens of each judge model."""
    totals: dict[str, ModelUsage] = {}
    for trace in traces:
        if trace.model is None or trace.usage is None:
            continue
        total = totals.setdefault(trace.model, ModelUsage())
        total.prompt_tokens += trace.usage.prompt_tokens
        total.completion_tokens += trace.usage.completion_tokens
        total.cached_tokens += trace.usage.cached_tokens
        total.total_tokens += trace.usage.total_tokens
    return totals
