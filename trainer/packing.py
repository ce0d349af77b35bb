"""Rows for the forward pass: a prompt once, every completion of its group, then the next group.

Computing the common prompt of a group once is exact: a completion's tokens see the prompt and
their own predecessors (:mod:`trainer.attention`), and their positions go on from the prompt's end,
so each token's inputs are what they would be in a row of its own. Nothing is padded.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.attention import Layout

#: Tokens of a micro-batch: as many as keep the processor busy. Activations take about a megabyte
#: per token of a 135M model; where memory does not suffice, the loop goes on with half as many.
TOKEN_BUDGET = 16_384 if torch.cuda.is_available() else 2048


@dataclass(frozen=True)
class Group:
    """A prompt and the completions that follow it, as token ids."""

    prompt: list[int]
    completions: list[list[int]]

    @property
    def tokens(self) -> int:
        """Tokens of the packed row."""
        return len(self.prompt) + sum(map(len, self.completions))


@dataclass(frozen=True)
class PackedRow:
    """Several groups as one row of ``S`` tokens.

    ``N`` counts completion tokens, in the order group, completion, token. ``source_N`` indexes the
    hidden states that predict ``targets_N``.
    """

    input_ids_S: Tensor
    position_ids_S: Tensor
    source_N: Tensor
    targets_N: Tensor
    layout: Layout


def pack(groups: list[Group], device: torch.device | None = None) -> PackedRow:
    """Lay out groups one after the other."""
    input_ids: list[int] = []
    positions: list[int] = []
    sources: list[int] = []
    targets: list[int] = []
    for group in groups:
        p = len(group.prompt)
        last = len(input_ids) + p - 1
        input_ids += group.prompt
        positions += range(p)
        for completion in group.completions:
            # The prompt's last token predicts the first one of every completion.
            start = len(input_ids)
            sources += [last, *range(start, start + len(completion) - 1)]
            targets += completion
            input_ids += completion
            positions += range(p, p + len(completion))
    layout = Layout.of(
        [len(group.prompt) for group in groups],
        [list(map(len, group.completions)) for group in groups],
        device or torch.device("cpu"),
    )
    tensors = (torch.tensor(x, device=device) for x in (input_ids, positions, sources, targets))
    return PackedRow(*tensors, layout)


def split(group: Group, token_budget: int) -> list[Group]:
    """Spread a group over rows within a budget, the prompt again in each.

    A completion that is alone too long for the budget has a row of its own.
    """
    rows: list[Group] = []
    for completion in group.completions:
        if rows and rows[-1].tokens + len(completion) <= token_budget:
            rows[-1].completions.append(completion)
        else:
            rows.append(Group(group.prompt, [completion]))
    return rows


def micro_batches(groups: list[Group], token_budget: int) -> list[list[int]]:
    """Share groups among micro-batches of about equal size within a budget.

    Every micro-batch costs a pass over all gradients, so there are as few as the budget allows; and
    equal ones need the least memory.

    Returns:
        Lists of indices into ``groups``; a group larger than the budget stands alone.
    """
    order = sorted(range(len(groups)), key=lambda i: (-groups[i].tokens, i))
    alone = [[index] for index in order if groups[index].tokens > token_budget]
    order = order[len(alone) :]
    count = math.ceil(sum(groups[index].tokens for index in order) / token_budget)
    while True:
        batches = _shares(order, groups, count)
        if all(sum(groups[i].tokens for i in batch) <= token_budget for batch in batches):
            return [*alone, *batches]
        count += 1


def _shares(order: list[int], groups: list[Group], count: int) -> list[list[int]]:
    """Give each group, the longest first, to the share that has least."""
    shares: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for index in order:
        least = sizes.index(min(sizes))
        shares[least].append(index)
        sizes[least] += groups[index].tokens
    return [sorted(share) for share in shares]
