"""Rows with two answers to one prompt, as token ids."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainer.data import prompt_ids, read_rows, row_of
from trainer.demonstrations import answer_ids
from trainer.errors import InvalidData
from trainer.packing import Group
from trainer.policy import Policy


@dataclass(frozen=True)
class Pair:
    """A prompt and two answers to it.

    ``mismatched`` is an answer to another prompt, where the loss compares with one. ``reference``
    holds the sums of the reference's log-probabilities, once they are known: of both answers, and
    of the mismatched one.
    """

    prompt_ids: list[int]
    preferred_ids: list[int]
    non_preferred_ids: list[int]
    mismatched_ids: list[int] | None = None
    reference: tuple[float, ...] | None = None

    @property
    def group(self) -> Group:
        """Both answers after their common prompt."""
        return Group(self.prompt_ids, [self.preferred_ids, self.non_preferred_ids])

    @property
    def compared(self) -> Group:
        """All answers whose log-probabilities the reference is asked for."""
        more = [] if self.mismatched_ids is None else [self.mismatched_ids]
        return Group(self.prompt_ids, [*self.group.completions, *more])

    @property
    def tokens(self) -> int:
        """Tokens of both answers."""
        return len(self.preferred_ids) + len(self.non_preferred_ids)


def load_pairs(path: Path, policy: Policy, *, context: int) -> list[Pair]:
    """Tokenise a file of preferences.

    Raises:
        InvalidData: the chat template does not take a row, or it is longer than the context.
    """
    pairs = []
    for index, row in enumerate(read_rows(path)):
        with row_of(path, index) as where:
            pair = _pair(row, policy, where)
        longest = len(pair.prompt_ids) + max(map(len, pair.group.completions))
        if longest > context:
            raise InvalidData(
                f"{where} has {longest} tokens, more than the model's context of {context}. "
                "Shorten the row."
            )
        pairs.append(pair)
    return pairs


def with_mismatches(pairs: Sequence[Pair], *, context: int) -> list[Pair]:
    """Give every pair the preferred answer of the next one with another prompt, cut to the context.

    In a file with one prompt an answer to it stands in, which makes the estimate of the distance
    too large and the loss careful.
    """
    following = other = pairs[0]
    found = []
    # Backwards, and twice, so that the last pairs are followed by the first.
    for pair in reversed([*pairs, *pairs]):
        if following.prompt_ids != pair.prompt_ids:
            other = following
        mismatched = other.preferred_ids[: context - len(pair.prompt_ids)]
        found.append(replace(pair, mismatched_ids=mismatched))
        following = pair
    return found[: len(pairs) - 1 : -1]


def _pair(row: dict[str, Any], policy: Policy, where: str) -> Pair:
    before, tools = row["input"]["messages"], row["input"].get("tools")
    preferred, other = (
        answer_ids(policy, before, row[name][0], tools, where=where)
        for name in ("preferred_output", "non_preferred_output")
    )
    return Pair(prompt_ids(policy.tokenizer, before, tools), preferred, other)
