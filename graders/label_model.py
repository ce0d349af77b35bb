"""`label_model`: a judge picks a label; 1 when it is one of those that pass, else 0.

    {"type": "label_model", "name": "tone", "model": "gpt-4.1-mini",
     "labels": ["friendly", "neutral", "rude"], "passing_labels": ["friendly", "neutral"],
     "input": [{"role": "user", "content": "What is the tone of: {{sample.output_text}}"}]}

OpenAI's jobs take it inside a `multi` only, and so does this service.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from graders.base import Grader
from graders.errors import SpecError, SpecProblem
from graders.judges.dialogue import begin, consult
from graders.judges.judge import TIME_LIMIT_S
from graders.judges.messages import Prompt
from graders.judges.replies import ReplyError, read_object
from graders.judges.spec import MessagesSpec, Sampling
from graders.outcome import Outcome, Score
from graders.paths import Context
from graders.services import Services
from graders.trace import Trace

_Label = Annotated[str, Field(min_length=1, max_length=200)]


class LabelModel(MessagesSpec):
    """The spec of a `label_model` grader."""

    type: Literal["label_model"]
    labels: Annotated[list[_Label], Field(min_length=1, max_length=200)]
    passing_labels: Annotated[list[_Label], Field(min_length=1)]
    sampling_params: Sampling = None

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if len(set(self.labels)) < len(self.labels):
            raise SpecError([SpecProblem("labels", "A label stands twice.")])
        unknown = [label for label in self.passing_labels if label not in self.labels]
        if unknown:
            message = f"{unknown[0]!r} is none of the labels; known: {', '.join(self.labels)}."
            raise SpecError([SpecProblem("passing_labels", message)])
        return self

    def warnings(self, *, covered: bool = False) -> list[str]:
        found = super().warnings(covered=covered)
        if set(self.passing_labels) == set(self.labels):
            found.append(f"{self.name} passes every label: its score is always 1.")
        return found

    def build(self, services: Services) -> Grader:
        return _LabelModelGrader(self, services)


class _LabelModelGrader(Grader):
    time_limit_s = TIME_LIMIT_S

    def __init__(self, spec: LabelModel, services: Services) -> None:
        self._judge = services.judges.get(spec.model, reads=spec.modalities())
        self.concurrency = self._judge.config.max_concurrency
        self._prompt = Prompt(spec.input)
        self._labels, self._passing = spec.labels, frozenset(spec.passing_labels)
        self._sampling = spec.sampling_params.request() if spec.sampling_params else {}
        self._schema: dict[str, Any] = {
            "type": "object",
            "additionalProperties": False,
            "required": ["label"],
            "properties": {"label": {"type": "string", "enum": spec.labels}},
        }
        self._request = (
            'Answer with one JSON object and nothing else: {"label": "…"}, where the label is one '
            f"of: {', '.join(spec.labels)}"
        )

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        messages = self._prompt.render(context, self._request)
        begin(trace, self._judge)
        label = await consult(
            self._judge,
            messages,
            self._read,
            schema=self._schema,
            sampling=self._sampling,
            trace=trace,
        )
        return Score(float(label in self._passing))

    def _read(self, text: str) -> str:
        label = read_object(text).get("label")
        if not isinstance(label, str) or label not in self._labels:
            raise ReplyError(f"the label is not one of {', '.join(self._labels)}")
        return label
