"""`score_model`: a judge reads the completion and gives it a number.

    {"type": "score_model", "name": "helpful", "model": "gpt-4.1-mini", "range": [0, 10],
     "input": [{"role": "user", "content": "Rate this answer: {{sample.output_text}}"}]}

A number outside of `range` is a mistake of the judge: it is asked once more, and then the grade
fails. `"range_policy": "clip"`, ours, takes the nearest bound instead and leaves a note.
"""

from typing import Any, Literal

from pydantic import Field

from graders.base import Grader
from graders.errors import GradeError
from graders.judges.dialogue import begin, consult
from graders.judges.judge import TIME_LIMIT_S
from graders.judges.messages import Prompt
from graders.judges.replies import ReplyError, read_number
from graders.judges.spec import MessagesSpec, Sampling
from graders.outcome import Outcome
from graders.paths import Context
from graders.ranges import Bounds, RangePolicy, in_range
from graders.services import Services
from graders.trace import Trace

_STEP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["description", "conclusion"],
    "properties": {"description": {"type": "string"}, "conclusion": {"type": "string"}},
}
#: The steps come first, so that the judge thinks before it settles on a number.
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["steps", "result"],
    "properties": {"steps": {"type": "array", "items": _STEP}, "result": {"type": "number"}},
}


class ScoreModel(MessagesSpec):
    """The spec of a `score_model` grader."""

    type: Literal["score_model"]
    range: Bounds = Field(default_factory=lambda: [0.0, 1.0])
    range_policy: RangePolicy = "fail"
    sampling_params: Sampling = None

    def build(self, services: Services) -> Grader:
        return _ScoreModelGrader(self, services)


class _ScoreModelGrader(Grader):
    time_limit_s = TIME_LIMIT_S

    def __init__(self, spec: ScoreModel, services: Services) -> None:
        self._judge = services.judges.get(spec.model, reads=spec.modalities())
        self.concurrency = self._judge.config.max_concurrency
        self._prompt = Prompt(spec.input)
        self._bounds, self._policy = spec.range, spec.range_policy
        self._sampling = spec.sampling_params.request() if spec.sampling_params else {}
        low, high = spec.range
        self._request = (
            'Answer with one JSON object and nothing else: {"steps": [{"description": "…", '
            f'"conclusion": "…"}}], "result": <a number from {low:g} to {high:g}>}}'
        )

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        messages = self._prompt.render(context, self._request)
        begin(trace, self._judge)
        value = await consult(
            self._judge,
            messages,
            self._read,
            schema=_SCHEMA,
            sampling=self._sampling,
            trace=trace,
        )
        kind = "model_grader_parse_error"
        return in_range(value, self._bounds, self._policy, grader=trace.grader, kind=kind)

    def _read(self, text: str) -> float:
        value = read_number(text)
        if self._policy == "fail":
            try:
                in_range(value, self._bounds, "fail", grader="", kind="model_grader_parse_error")
            except GradeError as error:
                raise ReplyError(f"{error.detail.rstrip('.')} (out_of_range)") from error
        return value
