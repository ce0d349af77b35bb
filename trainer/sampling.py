"""Sample and grade: completions are graded while others are still being sampled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from graders.outcome import Failure, Outcome, Score, to_wire
from trainer.data import PromptRow
from trainer.errors import GraderFailures
from trainer.rollout.base import Completion, RolloutEngine, Sampling


class Grader(Protocol):
    """A connection to the grader process."""

    def submit(self, id: int, sample: dict[str, Any], item: dict[str, Any]) -> None:
        """Ask for one completion's outcome."""
        ...

    def receive(self) -> tuple[int, Outcome, float]:
        """Wait for the next outcome: (id, outcome, latency in seconds)."""
        ...


@dataclass(frozen=True)
class Rollout:
    """One completion of one row, with what the grader made of it."""

    row: PromptRow
    completion: Completion
    text: str
    outcome: Outcome
    latency_s: float

    @property
    def score(self) -> float | None:
        """The score, or ``None`` when the grader abstained or failed."""
        return self.outcome.value if isinstance(self.outcome, Score) else None


@dataclass(frozen=True)
class Collector:
    """Turns rows into graded rollouts; ``progress`` is told (sampled, of how many)."""

    engine: RolloutEngine
    grader: Grader
    tokenizer: Any
    progress: Callable[[int, int], None]

    def collect(self, rows: list[PromptRow], sampling: Sampling) -> list[Rollout]:
        """Sample one completion for each row given (repeat a row for a group); keep the order."""
        sampled: dict[int, tuple[Completion, str]] = {}
        for index, completion in self.engine.generate([r.token_ids for r in rows], sampling):
            text = self.tokenizer.decode(completion.token_ids, skip_special_tokens=True)
            sampled[index] = (completion, text)
            self.grader.submit(index, _sample(text, completion), rows[index].item)
            self.progress(len(sampled), len(rows))
        graded: dict[int, tuple[Outcome, float]] = {}
        while len(graded) < len(rows):
            index, outcome, latency_s = self.grader.receive()
            graded[index] = (outcome, latency_s)
        return [Rollout(row, *sampled[i], *graded[i]) for i, row in enumerate(rows)]


def check_failures(rollouts: list[Rollout], limit: float) -> None:
    """Stop when too many completions could not be graded.

    Raises:
        GraderFailures: with the most frequent kind, and examples.
    """
    failed = [r for r in rollouts if isinstance(r.outcome, Failure)]
    if len(failed) <= limit * len(rollouts):
        return
    first = failed[0].outcome
    raise GraderFailures(
        f"{len(failed)} of {len(rollouts)} completions could not be graded, more than the limit of "
        f"{limit:.0%}; the first: {first.kind} in grader {first.grader!r}: {first.detail}",
        examples=[
            {"row": r.row.index, "text": r.text, "outcome": to_wire(r.outcome)} for r in failed[:5]
        ],
    )


def _sample(text: str, completion: Completion) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    finish = "length" if completion.truncated else "stop"
    return {
        "output_text": text,
        "output_tools": [],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
