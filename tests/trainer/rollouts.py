"""Rollouts made by hand, for what is computed from them alone."""

from typing import Any

from graders.outcome import Outcome, Score
from graders.trace import Trace
from trainer.data import PromptRow
from trainer.rollout.base import Completion
from trainer.sampling import Rollout


def rollout(
    outcome: Outcome | float,
    *,
    row: int = 0,
    text: str = "text",
    item: dict[str, Any] | None = None,
    tokens: int = 4,
    truncated: bool = False,
    traces: tuple[Trace, ...] = (),
) -> Rollout:
    """One graded completion; a number stands for a score."""
    graded = Score(float(outcome)) if isinstance(outcome, int | float) else outcome
    messages = [{"role": "user", "content": f"row {row}"}]
    completion = Completion([1] * tokens, [0.0] * tokens, truncated=truncated)
    where = PromptRow(row, [1, 2], messages, item or {})
    return Rollout(where, completion, text, graded, 0.001, traces)


def group(*outcomes: Outcome | float, row: int = 0, **more: Any) -> list[Rollout]:
    """The completions of one row."""
    return [rollout(outcome, row=row, **more) for outcome in outcomes]
