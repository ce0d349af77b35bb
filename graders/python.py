"""`python`: a function of the user's gives the score.

    {"type": "python", "name": "length",
     "source": "def grade(sample, item):\\n    return min(1.0, len(sample['output_text']) / 80)"}

`grade` is called with `sample` (output_text, choices, …, and output_json where the completion is
JSON) and `item`, and returns an int or a float. It runs in the sandbox, each call in a process of
its own; see `graders.sandbox`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, PrivateAttr, model_validator

from graders.base import Grader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.outcome import Failure, Score
from graders.paths import Context, Path
from graders.problems import sentence
from graders.sandbox import (
    Inspected,
    Program,
    Ran,
    Sandbox,
    SandboxConfig,
    SandboxError,
    SourceError,
    inspect_source,
    support,
)
from graders.services import Services
from graders.trace import Trace

#: Largest source, in bytes of UTF-8.
MAX_SOURCE_BYTES = 256_000
#: The packages that OpenAI's graders find, by the name of the image that holds them.
IMAGE_TAG: Literal["2025-05-08"] = "2025-05-08"

_OUTPUT_JSON = Path("sample", ("output_json",))


def _check_size(source: str) -> str:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise ValueError(f"A source may hold {MAX_SOURCE_BYTES:,} bytes, not {size:,}.")
    return source


class Python(Spec):
    """The spec of a `python` grader."""

    type: Literal["python"]
    source: Annotated[str, AfterValidator(_check_size)]
    image_tag: Literal["2025-05-08"] = IMAGE_TAG
    cache: bool = False
    """Whether the code always gives the same score for the same sample and item."""

    _inspected: Inspected = PrivateAttr(default=Inspected((), ()))

    @model_validator(mode="before")
    @classmethod
    def _fill_in_image_tag(cls, raw: Any) -> Any:
        # As OpenAI's server does: the normalised grader names the image.
        return {"image_tag": IMAGE_TAG, **raw} if isinstance(raw, dict) else raw

    @model_validator(mode="after")
    def _inspect(self) -> Self:
        try:
            self._inspected = inspect_source(self.source, SandboxConfig().python)
        except SourceError as error:
            problem = SpecProblem("source", sentence(str(error)), "python_parse_error")
            raise SpecError([problem]) from error
        except SandboxError as error:
            raise _no_sandbox(str(error)) from error
        return self

    def cacheable(self) -> bool:
        return self.cache

    def warnings(self, *, covered: bool = False) -> list[str]:
        """Packages that the code imports and will not find."""
        missing = sorted({name.partition(".")[0] for name in self._inspected.missing})
        if not missing:
            return []
        names = ", ".join(missing)
        return [
            f"{self.name} imports {names}, which is not installed where graders run; add it, or "
            "every grade that gets there fails."
        ]

    def build(self, services: Services) -> Grader:
        found = support(services.config.sandbox.python)
        if found.tier is None:
            raise _no_sandbox(found.detail)
        program = Program(self.source, self._inspected.imports)
        services.sandbox.prepare(program)
        return _PythonGrader(program, services.sandbox, services.config.sandbox)


def _no_sandbox(reason: str) -> SpecError:
    message = f"A python grader cannot run here. {reason}"
    return SpecError([SpecProblem("type", message, "sandbox_unavailable")])


class _PythonGrader(Grader):
    def __init__(self, program: Program, sandbox: Sandbox, config: SandboxConfig) -> None:
        self._program, self._sandbox = program, sandbox
        self.concurrency = sandbox.places
        # The sandbox keeps the time; this is for a sandbox that does not answer, and leaves room
        # for the other python graders of a `multi` that take turns with this one.
        self.time_limit_s = 10 * config.timeout_s + 60.0

    async def grade(self, context: Context, trace: Trace) -> Score | Failure:
        try:
            ran = await self._sandbox.run(self._program, _sample(context), context.item)
        except SandboxError as error:
            raise GradeError("python_grader_server_error", str(error)) from error
        trace.keep(_report(ran))
        return ran.outcome


def _sample(context: Context) -> dict[str, Any]:
    """What templates find in `sample`, `output_json` where the completion is JSON."""
    try:
        return {**context.sample, "output_json": context.value(_OUTPUT_JSON)}
    except GradeError:
        return context.sample


def _report(ran: Ran) -> str:
    """What the code printed, below a line that counts what was refused."""
    if not ran.refused:
        return ran.output
    total = sum(ran.refused.values())
    names = ", ".join(f"{name} {count}" for name, count in sorted(ran.refused.items()))
    calls = "system call was" if total == 1 else "system calls were"
    return f"[{total} {calls} refused: {names}]\n{ran.output}"
