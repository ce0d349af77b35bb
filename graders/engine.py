"""The engine: one grader, built once, that grades many samples."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from graders.base import Spec, run
from graders.outcome import Outcome
from graders.paths import Context
from graders.spec import parse_grader


class Graded(NamedTuple):
    """An outcome and how long grading took, in seconds."""

    outcome: Outcome
    latency_s: float


class Engine:
    """Grades samples with one grader; templates and formulas are compiled in the constructor."""

    def __init__(self, spec: Spec | Mapping[str, Any]) -> None:
        """Build the grader; raises `SpecError` when given JSON that is no grader."""
        self.spec = spec if isinstance(spec, Spec) else parse_grader(spec)
        self._grader = self.spec.build()

    async def grade(self, sample: dict[str, Any], item: dict[str, Any]) -> Outcome:
        """Grade one sample.

        `sample` holds output_text, output_tools, choices and, if it is known already,
        output_json; `item` is the row without `messages` and `tools` (see `spec.item_of`).
        Bad input of either kind is a `Failure`, not an exception.
        """
        return await run(self.spec, self._grader, Context(sample, item), name=self.spec.name)

    async def grade_timed(self, sample: dict[str, Any], item: dict[str, Any]) -> Graded:
        """Grade one sample and measure the time it took."""
        started = time.perf_counter()
        outcome = await self.grade(sample, item)
        return Graded(outcome, time.perf_counter() - started)

    async def close(self) -> None:
        """Release what the grader holds open."""
        await self._grader.close()
