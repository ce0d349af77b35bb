"""The engine: one grader, built once, that grades many samples."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from graders.base import Spec
from graders.group import Group
from graders.outcome import Outcome
from graders.paths import Context
from graders.running import Runner
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
        self._runner = Runner(self.spec, self._services, self.spec.name)

    @property
    def instant(self) -> bool:
        """Whether the next grade only computes, and briefly: `grade` then waits for nothing."""
        return self._runner.instant

    async def grade(
        self,
        sample: dict[str, Any],
        item: dict[str, Any],
        *,
        group: Group | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Graded:
        """Grade one sample.

        `sample` holds output_text, output_tools, choices and, if it is known already,
        output_json; `item` is the row without `messages` and `tools` (see `spec.item_of`).
        `group` is shared by the completions of one prompt, and `on_wait` is called when this one
        waits for the others. Whatever goes wrong is a `Failure`, not an exception. Cancelling the
        call frees everything that it held.
        """
        context = Context(sample, item, group, on_wait)
        runner = self._runner
        if runner.instant:
            outcome = runner.score(context)
            return Graded(outcome, context.traces[0].latency_s, tuple(context.traces))
        started = time.perf_counter()
        outcome = await runner.run(context)
        return Graded(outcome, time.perf_counter() - started, tuple(context.traces))

    async def close(self) -> None:
        """End the grades that are going on as failures; release what grader and services hold."""
        await self._runner.close()
        await self._services.close()
