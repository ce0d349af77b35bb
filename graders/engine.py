"""The engine: one grader, built once, that grades many samples."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from graders.base import Spec, run
from graders.group import Group
from graders.outcome import Outcome
from graders.paths import Context
from graders.services import Services, ServicesConfig
from graders.spec import parse_grader
from graders.trace import Trace


class Graded(NamedTuple):
    """An outcome, how long grading took in seconds, and what each grader did on the way."""

    outcome: Outcome
    latency_s: float
    traces: tuple[Trace, ...] = ()


class Engine:
    """Grades samples with one grader; templates and formulas are compiled in the constructor."""

    def __init__(
        self, spec: Spec | Mapping[str, Any], config: ServicesConfig | None = None
    ) -> None:
        """Build the grader; raises `SpecError` when given JSON that is no grader."""
        self.spec = spec if isinstance(spec, Spec) else parse_grader(spec)
        self._services = Services(config)
        self._grader = self.spec.build(self._services)

    async def grade(
        self, sample: dict[str, Any], item: dict[str, Any], *, group: Group | None = None
    ) -> Graded:
        """Grade one sample.

        `sample` holds output_text, output_tools, choices and, if it is known already,
        output_json; `item` is the row without `messages` and `tools` (see `spec.item_of`).
        `group` is shared by the completions of one prompt. Bad input of either kind is a
        `Failure`, not an exception.
        """
        context = Context(sample, item, group)
        started = time.perf_counter()
        outcome = await run(self.spec, self._grader, context, name=self.spec.name)
        return Graded(outcome, time.perf_counter() - started, tuple(context.traces))

    async def close(self) -> None:
        """Release what the grader and its services hold open."""
        await self._grader.close()
        await self._services.close()
