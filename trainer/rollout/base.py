"""What a sampler must do, whichever engine does it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from trainer.policy import Policy


@dataclass(frozen=True)
class Sampling:
    """How to sample. ``temperature`` 0 is greedy; ``seed`` fixes every draw of a call."""

    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True)
class Completion:
    """One sampled completion.

    ``token_ids`` end with the end-of-sequence id unless ``truncated``. ``logprobs`` are the
    sampler's, of the distribution it sampled from (after temperature), one per token.
    """

    token_ids: list[int]
    logprobs: list[float]
    truncated: bool


class RolloutEngine(Protocol):
    """A sampler that holds its own copy of the policy's weights."""

    def generate(
        self, prompts: list[list[int]], sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        """Sample one completion for each prompt; yield (index, completion) as each one ends."""
        ...

    def load_weights(self, policy: Policy) -> None:
        """Take over the policy's present weights and forget everything computed with older ones."""
        ...
