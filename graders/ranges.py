"""The range of a score, and what becomes of a score outside of it.

A spec that knows its range has two fields: `range` (`Bounds`) and `range_policy` (`RangePolicy`,
`fail` unless given). A score outside is a mistake of whoever made it, so it is never changed
silently: `fail` ends the grade, `clip` takes the nearest bound and leaves a note.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from graders.base import Finite, finite
from graders.errors import GradeError
from graders.outcome import Note, Score

RangePolicy: TypeAlias = Literal["fail", "clip"]


def _ordered(bounds: list[float]) -> list[float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} must be below the upper {bounds[1]:g}")
    return bounds


#: The field `range`: `[low, high]`, both included.
Bounds: TypeAlias = Annotated[
    list[Finite], Field(min_length=2, max_length=2), AfterValidator(_ordered)
]


def in_range(
    value: float, bounds: list[float] | None, policy: RangePolicy, *, grader: str, kind: str
) -> Score:
    """The score, when it is finite and within `bounds` (`None`: any finite number will do).

    Otherwise `fail` raises `GradeError(kind, …)`, and `clip` returns the nearest bound with a
    `Note` of that kind under the name `grader` (a grader's own is `trace.grader`). NaN and
    infinity are `non_finite_reward` under either policy.
    """
    value = finite(value)
    if bounds is None or bounds[0] <= value <= bounds[1]:
        return Score(value)
    detail = f"The score {value:g} is out of range [{bounds[0]:g}, {bounds[1]:g}]"
    if policy == "fail":
        raise GradeError(kind, f"{detail}.")
    clipped = min(max(value, bounds[0]), bounds[1])
    return Score(clipped, notes=(Note(grader, kind, f"{detail}; taken as {clipped:g}."),))
