"""Completions as the update sees them, and how they share forward passes."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trainer.objectives.overlong import overlong_penalty
from trainer.packing import Group, micro_batches, split
from trainer.sampling import Rollout
from trainer.spec import Hyperparameters
from trainer.spread import comparable

#: The figures of tokens that forward passes leave on examples.
Figure = Literal["old_logp_N", "reference_logp_N", "value_N"]


@dataclass(eq=False)
class Example:
    """One completion of a step.

    Tensors have one entry per token, are detached, and on the CPU. ``reward`` is the score after
    shaping; ``None`` for a completion that takes no part. ``weight`` is that of each of its tokens
    in the loss of its update.
    """

    rollout: Rollout
    reward: float | None
    sampler_logp_N: Tensor
    weight: float = 0.0
    old_logp_N: Tensor | None = None
    reference_logp_N: Tensor | None = None
    value_N: Tensor | None = None
    advantage_N: Tensor | None = None
    return_N: Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens of the completion."""
        return len(self.rollout.completion.token_ids)

    @property
    def has_advantage(self) -> bool:
        """Whether any of its tokens has."""
        return self.advantage_N is not None and bool(self.advantage_N.any())

    @property
    def advantage(self) -> float:
        """The mean advantage of its tokens; 0 where it takes no part."""
        return 0.0 if self.advantage_N is None else float(self.advantage_N.mean())


def make_examples(groups: list[list[Rollout]], hp: Hyperparameters) -> list[list[Example]]:
    """Examples of each group, their rewards shaped: DAPO's penalty for length where it is on."""
    return [
        [Example(r, _reward(r, hp), torch.tensor(r.completion.logprobs)) for r in group]
        for group in groups
    ]


@dataclass(frozen=True)
class MicroBatch:
    """Examples of one forward pass, in the order of its tokens, and the rows that hold them."""

    groups: list[Group]
    examples: list[Example]

    @property
    def completion_N(self) -> Tensor:
        """The number of each token's completion, from 0."""
        return torch.arange(len(self.examples)).repeat_interleave(self._lengths)

    @property
    def weight_N(self) -> Tensor:
        """The weight of each token."""
        return torch.tensor([e.weight for e in self.examples]).repeat_interleave(self._lengths)

    def gather(self, figure: str) -> Tensor:
        """A figure of all tokens, ``[N]``."""
        return torch.cat([getattr(example, figure) for example in self.examples])

    def scatter(self, figure: Figure, values_N: Tensor) -> None:
        """Leave a figure on the examples."""
        parts = torch.split(values_N, self._lengths.tolist())
        for example, part in zip(self.examples, parts, strict=True):
            setattr(example, figure, part)

    @property
    def _lengths(self) -> Tensor:
        return torch.tensor([example.length for example in self.examples])


def plan(groups: list[list[Example]], token_budget: int) -> list[MicroBatch]:
    """Share examples among forward passes; those of one group have their prompt in common."""
    rows = [row for group in groups for row in _rows(group, token_budget)]
    return [
        MicroBatch([rows[i][0] for i in indices], [e for i in indices for e in rows[i][1]])
        for indices in micro_batches([row for row, _ in rows], token_budget)
    ]


def _rows(group: list[Example], token_budget: int) -> Iterator[tuple[Group, list[Example]]]:
    if not group:
        return
    prompt = group[0].rollout.row.token_ids
    whole = Group(prompt, [e.rollout.completion.token_ids for e in group])
    members = iter(group)
    for row in split(whole, token_budget):
        yield row, list(itertools.islice(members, len(row.completions)))


def _reward(rollout: Rollout, hp: Hyperparameters) -> float | None:
    score = comparable(rollout, mask_truncated=hp.mask_truncated)
    if score is None:
        return None
    return score + overlong_penalty(
        len(rollout.completion.token_ids),
        max_length=hp.max_completion_tokens,
        buffer=hp.overlong_buffer_tokens,
        penalty=hp.overlong_penalty,
    )
