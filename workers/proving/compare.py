"""How a served model compares with the trained one and with the base, and what that proves."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from core.serving_proofs import FAILED, PROVED
from workers.proving.expected import Expected

#: Most mean |Δ log-prob| per token between the served and the trained model, in nats. The same
#: weights computed in bfloat16 and in float32 differ by 0.02 to 0.06 on a small model, and by 0.07
#: where the adapter was also rounded into a bfloat16 base; other weights, by as much as training
#: has changed the model.
TOLERANCE = 0.2


@dataclass(frozen=True)
class Figures:
    """Differences per token, in nats, over the completions of some prompts."""

    prompts: int
    tokens: int
    mean_difference: float
    max_difference: float
    mean_difference_to_base: float
    differs_from_base: bool


def measure(
    expected: Sequence[Expected], served: Sequence[list[float]], base: Sequence[list[float]]
) -> Figures:
    """Compare what the served model and the served base give for the expected tokens."""
    wanted = [*chain.from_iterable(row.logprobs for row in expected)]
    off = _distances([*chain.from_iterable(served)], wanted)
    moved = _distances([*chain.from_iterable(served)], [*chain.from_iterable(base)])
    return Figures(
        prompts=len(expected),
        tokens=len(wanted),
        mean_difference=sum(off) / len(off),
        max_difference=max(off),
        mean_difference_to_base=sum(moved) / len(moved),
        differs_from_base=max(moved) > 0,
    )


def tolerance(export: dict[str, Any]) -> float:
    """Return the limit of the mean difference, given the numbers of the trainer's own proof.

    An adapter that was trained on a base in 4 bits is served on the base as it is, which alone sets
    it apart by what the trainer measured.
    """
    return TOLERANCE + (export.get("mean_difference_unquantized") or 0.0)


def judge(figures: Figures, export: dict[str, Any]) -> tuple[str, str | None]:
    """Return the state of the proof, and a sentence when it failed.

    `export` are the numbers of the trainer's own proof: where its export is the base model to the
    last bit, the served one may be as well.
    """
    limit = tolerance(export)
    if figures.mean_difference > limit:
        return FAILED, (
            f"The served model differs from the trained one by {figures.mean_difference:.3f} nats"
            f" per token in the mean (limit {limit:.2g}): chat answers come from other weights,"
            " or the server computes too coarsely; have the operator read its log."
        )
    if not figures.differs_from_base and export.get("differs_from_base", True):
        return FAILED, (
            "The served model answers exactly as its base model does, though the exported weights"
            " are others: the server left them out, or rounds away what was learned."
        )
    return PROVED, None


def _distances(these: list[float], those: list[float]) -> list[float]:
    return [abs(one - other) for one, other in zip(these, those, strict=True)]
