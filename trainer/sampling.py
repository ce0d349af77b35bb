"""Sample and grade: completions are graded while others are still being sampled."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from graders.client import Reply
from graders.outcome import Failure, Outcome, Score, to_wire
from graders.trace import Trace
from trainer.data import PromptRow
from trainer.errors import GraderFailures
from trainer.rollout.base import Completion, RolloutEngine, Sampling

#: Completions that could not be graded which the user is shown.
EXAMPLES = 5


class Grader(Protocol):
    """A connection to the grader process."""

    def submit(
        self,
        id: int,
        sample: dict[str, Any],
        item: dict[str, Any],
        *,
        group: tuple[int, int] | None = None,
    ) -> None:
        """Ask for one completion's outcome; ``group`` is its group's number and size."""
        ...

    def receive(self) -> Reply:
        """Wait for the next outcome."""
        ...


@dataclass(frozen=True)
class Rollout:
    """One completion of one row, with what the grader made of it."""

    row: PromptRow
    completion: Completion
    text: str
    outcome: Outcome
    latency_s: float
    traces: tuple[Trace, ...] = ()

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

    def collect(
        self, rows: list[PromptRow], sampling: Sampling, *, group_size: int = 1
    ) -> list[Rollout]:
        """Sample one completion for each row given; keep the order.

        A group is a row repeated ``group_size`` times; graders that compare need it whole.
        """
        sampled: dict[int, tuple[Completion, str]] = {}
        for index, completion in self.engine.generate([r.token_ids for r in rows], sampling):
            text = self.tokenizer.decode(completion.token_ids, skip_special_tokens=True)
            sampled[index] = (completion, text)
            group = (index // group_size, group_size) if group_size > 1 else None
            sample = sample_of(text, completion)
            self.grader.submit(index, sample, rows[index].item, group=group)
            self.progress(len(sampled), len(rows))
        graded: dict[int, Reply] = {}
        while len(graded) < len(rows):
            reply = self.grader.receive()
            graded[reply.id] = reply
        return [Rollout(row, *sampled[i], *graded[i][1:]) for i, row in enumerate(rows)]


def check_failures(rollouts: list[Rollout], limit: float) -> None:
    """Stop when too many completions could not be graded.

    Raises:
        GraderFailures: with the most frequent kind, and examples of every kind.
    """
    by_kind: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        if isinstance(rollout.outcome, Failure):
            by_kind[rollout.outcome.kind].append(rollout)
    failed = sum(map(len, by_kind.values()))
    if failed <= limit * len(rollouts):
        return
    kinds = sorted(by_kind.values(), key=len, reverse=True)
    most = kinds[0][0].outcome
    assert isinstance(most, Failure)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    shown = [rollout for rollout in turns if rollout is not None][:EXAMPLES]
    raise GraderFailures(
        f"{failed} of {len(rollouts)} completions could not be graded, more than the limit of "
        f"{limit:.0%}; most often ({len(kinds[0])}): {most.kind} in grader {most.grader!r}: "
        f"{most.detail}",
        examples=[
            {"row": r.row.index, "text": r.text, "outcome": to_wire(r.outcome)} for r in shown
        ],
    )


def sample_of(text: str, completion: Completion) -> dict[str, Any]:
    """What graders read as ``sample``."""
    message = {"role": "assistant", "content": text}
    finish = "length" if completion.truncated else "stop"
    return {
        "output_text": text,
        "output_tools": [],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
