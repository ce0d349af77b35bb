"""Steps made by hand, for signs that look at many of them."""

from collections.abc import Callable, Iterable

from trainer.watch.finding import Finding
from trainer.watch.signs.view import Scored


def scored(score: float, *, length: int = 10, **sub_scores: float) -> Scored:
    """One completion."""
    return Scored(score, length, sub_scores)


def first_of(found: Iterable[Finding | None]) -> Finding | None:
    """The first warning of a run of steps, if any."""
    return next((finding for finding in found if finding is not None), None)


def run(
    step: Callable[[list[list[Scored]]], Finding | None],
    made: Callable[[int], list[list[Scored]]],
    *,
    steps: int = 12,
) -> Finding | None:
    """Show ``steps`` steps to a sign; the first thing that it says."""
    return first_of([step(made(i)) for i in range(steps)])
