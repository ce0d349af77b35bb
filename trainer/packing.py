"""Rows for the forward pass: a prompt once, then every completion of its group.

Computing the common prompt of a group once is exact: a completion's tokens see the prompt and
their own predecessors through the mask, and their positions go on from the prompt's end, so each
token's inputs are what they would be in a row of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


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
class PackedBatch:
    """Several groups as one padded batch of ``B`` rows of ``S`` tokens.

    ``N`` counts completion tokens, in the order group, completion, token.
    ``source_N`` indexes the flattened ``B·S`` hidden states that predict ``targets_N``.
    """

    input_ids_BS: Tensor
    position_ids_BS: Tensor
    mask_B1SS: Tensor
    source_N: Tensor
    targets_N: Tensor

    def to(self, device: torch.device) -> "PackedBatch":
        """The same batch on a device."""
        return PackedBatch(*(t.to(device) for t in vars(self).values()))


def pack(groups: list[Group]) -> PackedBatch:
    """Lay out groups, one a row, padded to the longest."""
    width = max(group.tokens for group in groups)
    input_ids = torch.zeros(len(groups), width, dtype=torch.long)
    positions = torch.zeros(len(groups), width, dtype=torch.long)
    # A padded position sees itself only: a row of the mask without any entry would give NaN.
    mask = torch.eye(width, dtype=torch.bool).repeat(len(groups), 1, 1)
    sources: list[int] = []
    targets: list[int] = []
    for row, group in enumerate(groups):
        p = len(group.prompt)
        input_ids[row, :p] = torch.tensor(group.prompt)
        positions[row, :p] = torch.arange(p)
        mask[row, :p, :p] = _causal(p)
        start = p
        for completion in group.completions:
            end = start + len(completion)
            input_ids[row, start:end] = torch.tensor(completion)
            positions[row, start:end] = torch.arange(p, p + len(completion))
            mask[row, start:end, :p] = True
            mask[row, start:end, start:end] = _causal(len(completion))
            base = row * width
            # The prompt's last token predicts the first one of every completion.
            sources += [base + p - 1, *range(base + start, base + end - 1)]
            targets += completion
            start = end
    return PackedBatch(
        input_ids, positions, mask[:, None], torch.tensor(sources), torch.tensor(targets)
    )


def split(group: Group, token_budget: int) -> list[Group]:
    """Spread a group over rows within a budget, the prompt again in each.

    A row's attention mask grows with the square of its length. A completion that is alone too long
    for the budget has a row of its own.
    """
    rows: list[Group] = []
    for completion in group.completions:
        if rows and rows[-1].tokens + len(completion) <= token_budget:
            rows[-1].completions.append(completion)
        else:
            rows.append(Group(group.prompt, [completion]))
    return rows


def micro_batches(groups: list[Group], token_budget: int) -> list[list[int]]:
    """Split groups into batches of similar length whose padded size stays within a budget.

    Returns:
        Lists of indices into ``groups``; a group larger than the budget stands alone.
    """
    order = sorted(range(len(groups)), key=lambda i: (-groups[i].tokens, i))
    batches: list[list[int]] = []
    for index in order:
        if batches:
            width = groups[batches[-1][0]].tokens
            if width * (len(batches[-1]) + 1) <= token_budget:
                batches[-1].append(index)
                continue
        batches.append([index])
    return batches


def _causal(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()
