"""What every grader is made of: a spec (pydantic, refused when wrong) and what it builds.

A new grader is one file with a `Spec` subclass and a `Grader`, and one line in
`registry.SINGLE_GRADERS`; nothing that calls graders changes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from graders.errors import GradeError
from graders.outcome import Failure, Note, Outcome, Score
from graders.paths import Context, Path
from graders.services import Services
from graders.trace import Trace

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Grader(ABC):
    """A built grader; it is used for many samples, concurrently.

    `concurrency` is how many samples it grades at a time, and `time_limit_s` how long one may
    take; the time spent waiting for a turn, or for the other completions of a group, does not
    count. A constructor may set both anew.
    """

    concurrency: int = 64
    time_limit_s: float = 600.0
    #: Whether these bounds apply at all; not to a grader that only runs others.
    takes_turns: bool = True

    @abstractmethod
    async def grade(self, context: Context, trace: Trace) -> Outcome:
        """Grade one sample; may raise `GradeError`, which `Spec.settle` turns into a failure.

        `trace` is this grader's entry in `context.traces`, to write model, usage and output into.
        """

    async def close(self) -> None:  # noqa: B027 - most graders hold nothing open
        """Release what the grader holds open."""


class PureGrader(Grader):
    """A grader that only computes: it touches nothing outside and waits for nothing.

    It is graded on the spot, without a task; one that turns out slow goes on in a thread (see
    `running`). Inputs must be bounded so that a grade stays below a second.
    """

    @abstractmethod
    def score(self, context: Context, trace: Trace) -> Outcome:
        """Grade one sample, as `grade`; may run in another thread, but one call at a time."""

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        return self.score(context, trace)


class Spec(BaseModel):
    """The JSON of a grader. Unknown fields are refused; `wire()` gives the JSON back."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)

    type: str
    name: Annotated[str, Field(min_length=1, max_length=200)]
    pass_threshold: Finite | None = None
    """Only says what counts as passed in an evaluation; it never changes the score."""
    invalid_grade: Finite | None = None
    """The score when the sample cannot be read; without it that is a failure."""

    def paths(self) -> frozenset[Path]:
        """The variables that the grader's templates read."""
        return frozenset()

    def warnings(self, *, covered: bool = False) -> list[str]:
        """Sentences about what is allowed but likely a mistake.

        `covered` says that a grader around this one has an `invalid_grade`.
        """
        reads_json = any(
            p.namespace == "sample" and p.steps[0] == "output_json" for p in self.paths()
        )
        if not reads_json or covered or self.invalid_grade is not None:
            return []
        return [
            f"{self.name} reads sample.output_json: a completion that is not JSON is a failure, "
            "not a score; set invalid_grade to score it."
        ]

    def cacheable(self) -> bool:
        """Whether the same variables always give the same score, at a cost worth saving.

        The engine then keeps scores by the values of `paths()`, or by the whole sample and item
        where the grader has no paths. A `PureGrader` needs none of this.
        """
        return False

    def build(self, services: Services) -> Grader:
        """Build the grader: templates and formulas are compiled here, once."""
        raise NotImplementedError

    def wire(self) -> dict[str, Any]:
        """The grader as normalised JSON, without fields that were not given."""
        given: dict[str, Any] = self.model_dump(mode="json", exclude_unset=True)
        return {"type": self.type, **given}

    def settle(self, outcome: Outcome, name: str) -> Outcome:
        """Name the grader of a failure, and apply `invalid_grade` where the sample is to blame."""
        if not isinstance(outcome, Failure):
            return outcome
        culprit = outcome.grader or name
        if self.invalid_grade is not None and outcome.blame == "sample":
            note = Note(culprit, outcome.kind, outcome.detail)
            return Score(self.invalid_grade, outcome.sub_scores, (note,))
        return Failure(outcome.kind, outcome.detail, culprit, outcome.sub_scores)


def given(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given: typed clients write the others as `null`."""
    return {name: value for name, value in raw.items() if value is not None}


def finite(value: float) -> float:
    """Return the value as a float, or fail the grade when it is NaN, infinite or too large."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise GradeError("non_finite_reward", f"The score is {number}, not a finite number.")
    return number
