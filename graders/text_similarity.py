"""`text_similarity`: how alike two texts are, from 0 to 1, by one of OpenAI's metrics.

    {"type": "text_similarity", "name": "summary", "evaluation_metric": "rouge_l",
     "input": "{{sample.output_text}}", "reference": "{{item.summary}}"}

`cosine` compares embeddings, which a model of the operator makes; every other metric is computed
here (see `graders.metrics`). `embedding_model` is ours.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from graders.base import Grader, PureGrader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.judges.judge import TIME_LIMIT_S
from graders.metrics import TooLongError, overlap
from graders.metrics.meteor import Meteor
from graders.metrics.tokens import prepare
from graders.outcome import Score
from graders.paths import Context, Path
from graders.services import Services
from graders.template import Template, TemplateText, paths_of
from graders.trace import Trace

Metric: TypeAlias = Callable[[str, str], float]

#: Longest text, in characters.
MAX_CHARS = 400_000
#: The model that OpenAI's `cosine` uses.
EMBEDDING_MODEL = "text-embedding-3-large"

_METRICS: dict[str, Metric] = {
    "fuzzy_match": overlap.fuzzy,
    "bleu": overlap.bleu,
    "gleu": overlap.gleu,
    "rouge_l": overlap.rouge_l,
    **{f"rouge_{n}": functools.partial(overlap.rouge_n, order=n) for n in range(1, 6)},
}


class TextSimilarity(Spec):
    """The spec of a `text_similarity` grader."""

    type: Literal["text_similarity"]
    input: TemplateText
    reference: TemplateText
    evaluation_metric: Literal[
        "fuzzy_match",
        "bleu",
        "gleu",
        "meteor",
        "cosine",
        "rouge_1",
        "rouge_2",
        "rouge_3",
        "rouge_4",
        "rouge_5",
        "rouge_l",
    ]
    embedding_model: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _embedding_model_is_for_cosine(self) -> Self:
        if self.embedding_model and self.evaluation_metric != "cosine":
            message = f"Only cosine uses an embedding model; {self.evaluation_metric} does not."
            raise SpecError([SpecProblem("embedding_model", message)])
        return self

    def paths(self) -> frozenset[Path]:
        return paths_of([self.input, self.reference])

    def warnings(self, *, covered: bool = False) -> list[str]:
        found = super().warnings(covered=covered)
        if self.evaluation_metric == "meteor" and not _meteor().has_synonyms:
            found.append(
                f"{self.name} computes meteor without synonyms, as nltk finds no usable WordNet "
                "here: words that differ but mean the same count as different."
            )
        return found

    def cacheable(self) -> bool:
        return self.evaluation_metric == "cosine"

    def build(self, services: Services) -> Grader:
        if self.evaluation_metric == "cosine":
            return _CosineGrader(self, services)
        return _MetricGrader(self)


@functools.cache
def _meteor() -> Meteor:
    return Meteor()


class _MetricGrader(PureGrader):
    def __init__(self, spec: TextSimilarity) -> None:
        self._input = Template.parse(spec.input)
        self._reference = Template.parse(spec.reference)
        self._metric = _METRICS.get(spec.evaluation_metric) or _meteor()
        prepare()

    def score(self, context: Context, trace: Trace) -> Score:
        try:
            return Score(self._metric(*_rendered(context, self._input, self._reference)))
        except TooLongError as error:
            raise GradeError("other_error", f"The texts cannot be compared: {error}.") from error


def _rendered(context: Context, *templates: Template) -> list[str]:
    texts = [template.render(context) for template in templates]
    longest = max(map(len, texts))
    if longest > MAX_CHARS:
        raise TooLongError(f"a text may hold {MAX_CHARS:,} characters, not {longest:,}")
    return texts


class _CosineGrader(Grader):
    # The client of the embeddings server bounds every request and all tries together.
    time_limit_s = TIME_LIMIT_S

    def __init__(self, spec: TextSimilarity, services: Services) -> None:
        self._input = Template.parse(spec.input)
        self._reference = Template.parse(spec.reference)
        self._model = spec.embedding_model or EMBEDDING_MODEL
        try:
            services.judges.get(self._model, does="embeddings")
        except SpecError as error:
            problems = [SpecProblem("embedding_model", p.message, p.code) for p in error.problems]
            raise SpecError(problems) from error
        self._embeddings = services.embeddings

    async def grade(self, context: Context, trace: Trace) -> Score:
        text, reference = self._input.render(context), self._reference.render(context)
        # Servers refuse empty texts, and neither of these cases needs a server.
        if text == reference:
            return Score(1.0)
        if not text or not reference:
            return Score(0.0)
        trace.model = self._model
        first, second = await self._embeddings.vectors(self._model, [text, reference])
        return Score(_cosine(first, second))


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine of the angle between two vectors; more than a right angle counts as 0."""
    length = math.hypot(*first) * math.hypot(*second)
    if len(first) != len(second) or not length or not math.isfinite(length):
        detail = "The embeddings have no angle between them: empty, of different length, or zero."
        raise GradeError("model_grader_parse_error", detail)
    dot = math.fsum(map(operator.mul, first, second))
    return min(1.0, max(0.0, dot / length))
